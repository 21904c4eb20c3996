package guide_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/patterns/statuspage"
)

func Example_statusPage() {
	sink := core.NewSink(core.SinkOptions{})
	ship := func(ctx context.Context, order string) error { return nil }
	orders := core.Must(core.NewCoordinator(ship, core.Options{Name: "orders", Sink: sink}))
	defer orders.Close()

	mux := http.NewServeMux()
	server := httptest.NewServer(mux) // a program: http.ListenAndServe("localhost:6060", mux)
	defer server.Close()
	page := core.Must(statuspage.New(statuspage.Options{
		Sinks:        map[string]*core.Sink{"main": sink},
		Coordinators: []core.Inspector{orders},
	}))
	defer page.Close() // before the server ends: it ends the streams to browsers
	mux.Handle("/debug/ephemeral/", http.StripPrefix("/debug/ephemeral", page))
	answer := core.Must(http.Get(server.URL + "/debug/ephemeral/"))
	answer.Body.Close()
	fmt.Println(answer.Status, answer.Header.Get("Content-Type"))
	// Output: 200 OK text/html; charset=utf-8
}

func Example_statusPageToken() {
	orders := core.Must(core.NewCoordinator(func(context.Context, string) error { return nil }, core.Options{Name: "orders"}))
	defer orders.Close()
	secret := rand.Text() // crypto/rand; or from the configuration
	view, err := statuspage.Token(secret)
	if err != nil {
		panic(err)
	}
	page := core.Must(statuspage.New(statuspage.Options{
		Coordinators: []core.Inspector{orders},
		View:         view,
		Allow:        func(_ *http.Request, a statuspage.Action) bool { return a.Kind == "pause" || a.Kind == "resume" },
		Hosts:        []string{"status.example"}, // for a proxy on this machine
	}))
	defer page.Close()
	server := httptest.NewServer(http.StripPrefix("/debug/ephemeral", page))
	defer server.Close()

	link := server.URL + "/debug/ephemeral/?token=" + secret // for a person
	browser := http.Client{Jar: core.Must(cookiejar.New(nil))}
	answer := core.Must(browser.Get(link))
	answer.Body.Close()
	fmt.Println(answer.Status, answer.Request.URL.RequestURI())
	answer = core.Must(http.Get(server.URL + "/debug/ephemeral/"))
	answer.Body.Close()
	fmt.Println(answer.Status)
	// Output:
	// 200 OK /debug/ephemeral/
	// 401 Unauthorized
}
