package guide_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/statuspage"
)

func Example_statusPage() {
	sink := signals.NewSink(signals.SinkOptions{})
	ship := func(ctx context.Context, order string) error { return nil }
	orders := core.Must(core.NewCoordinator(ship, core.Options{Name: "orders", Sink: sink}))
	defer orders.Close()

	mux := http.NewServeMux()
	server := httptest.NewServer(mux) // a program: http.ListenAndServe("localhost:6060", mux)
	defer server.Close()
	page := core.Must(statuspage.New(statuspage.Options{
		Sinks:        map[string]*signals.Sink{"main": sink},
		Coordinators: []core.Inspector{orders},
	}))
	defer page.Close() // before the server ends, because it ends the streams to browsers
	mux.Handle("/debug/ephemeral/", http.StripPrefix("/debug/ephemeral", page))
	answer := core.Must(http.Get(server.URL + "/debug/ephemeral/"))
	answer.Body.Close()
	fmt.Println(answer.Status, answer.Header.Get("Content-Type"))
	// Output: 200 OK text/html; charset=utf-8
}
