package statuspage_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/statuspage"
)

// A page shows a coordinator. A script reads the same data as JSON.
func Example() {
	charge := func(ctx context.Context, order string) error {
		core.OperationFrom(ctx).Raise("order.charged")
		return nil
	}
	orders := core.Must(core.NewCoordinator(charge, core.Options{Name: "orders"}))
	defer orders.Close()
	page := core.Must(statuspage.New(statuspage.Options{
		Sinks:        map[string]*signals.Sink{"main": orders.Sink()},
		Coordinators: []core.Inspector{orders},
	}))
	mux := http.NewServeMux()
	mux.Handle("/debug/ephemeral/", http.StripPrefix("/debug/ephemeral", page))
	server := httptest.NewServer(mux) // in a program: an http.Server
	defer server.Close()
	defer page.Close() // or server.RegisterOnShutdown(func() { page.Close() })

	orders.Do(context.Background(), "A-17")
	answer := core.Must(http.Get(server.URL + "/debug/ephemeral/api/operations?status=succeeded"))
	defer answer.Body.Close()
	var shown struct{ Operations []struct{ Status string } }
	json.NewDecoder(answer.Body).Decode(&shown)
	fmt.Println(shown.Operations)
	// Output: [{succeeded}]
}

// The page may pause, and do nothing else. Every action is a signal.
func ExampleAction() {
	orders := core.Must(core.NewCoordinator(func(context.Context, string) error { return nil }, core.Options{Name: "orders"}))
	defer orders.Close()
	page, err := statuspage.New(statuspage.Options{
		Coordinators: []core.Inspector{orders},
		View:         func(r *http.Request) bool { return r.Header.Get("X-User") != "" }, // in a program: check a login
		Who:          func(r *http.Request) string { return r.Header.Get("X-User") },
		Allow: func(_ *http.Request, a statuspage.Action) bool {
			return a.Kind == "pause" || a.Kind == "resume"
		},
	})
	if err != nil {
		panic(err)
	}
	defer page.Close()
	statuspage.Acted.Subscribe(page.Sink(), func(_ signals.Signal, a statuspage.Action) {
		fmt.Println(a.Who, "did", a.Kind, a.Coordinator)
	})
	statuspage.Refused.Subscribe(page.Sink(), func(_ signals.Signal, a statuspage.Action) {
		fmt.Println(a.Who, "may not", a.Kind, a.Coordinator)
	})

	for _, action := range []string{
		`{"action": "pause", "coordinator": "orders"}`,
		`{"action": "cancel", "coordinator": "orders", "operation": 1}`,
	} {
		r := httptest.NewRequest("POST", "/api/act", strings.NewReader(action))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-User", "ada")
		page.ServeHTTP(httptest.NewRecorder(), r)
	}
	fmt.Println("paused:", orders.Stats().Paused)
	// Output:
	// ada did pause orders
	// ada may not cancel orders
	// paused: true
}

// A script sends the secret of a token in a header, and a person opens a link once.
func ExampleToken() {
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
