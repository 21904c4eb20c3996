package signalinghttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/signalinghttp"
)

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/big.bin" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, "0123456789")
	}))
	defer server.Close()
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})
	client := &http.Client{Transport: signalinghttp.NewTransport(nil, sink)} // nil: http.DefaultTransport

	req := core.Must(http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/big.bin", nil))
	var file strings.Builder
	n, err := signalinghttp.Download(client, req, &file, sink)
	fmt.Println(n, err)
	for s := range sink.Sense(signals.Query{}) {
		fmt.Println(s.Name)
	}

	req.URL.Path = "/gone.bin"
	_, err = signalinghttp.Download(client, req, &file, sink)
	var status *signalinghttp.StatusError
	fmt.Println(errors.As(err, &status), sink.Has("http.error:404"))
	// Output:
	// 10 <nil>
	// stage.starting
	// progress:0
	// stage.request
	// stage.headers
	// stage.reading
	// progress:100
	// stage.completed
	// true true
}

// In a body, the operation raises the signals.
func ExampleDownload() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "0123456789") }))
	defer server.Close()
	downloads, err := core.NewCoordinator(func(ctx context.Context, url string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		var data strings.Builder
		_, err = signalinghttp.DownloadLimit(http.DefaultClient, req, &data, nil, 1<<20)
		return err // or process the data
	}, core.Options{})
	if err != nil {
		panic(err)
	}
	defer downloads.Close()

	if err := downloads.Do(context.Background(), server.URL); err != nil {
		panic(err)
	}
	for s := range downloads.Sense(signals.Query{Pattern: "stage.*"}) {
		fmt.Println(s.Name)
	}
	fmt.Println(downloads.Count("progress:*"), "signals of progress")
	fmt.Println("under way:", downloads.Has("stage.reading") && !downloads.Has("stage.completed"))
	// Output:
	// stage.starting
	// stage.request
	// stage.headers
	// stage.reading
	// stage.completed
	// 2 signals of progress
	// under way: false
}

// Each request of a server is an operation.
func ExampleHandler() {
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "operation of ", core.OperationFrom(r.Context()).Source())
	})
	h, err := signalinghttp.NewHandler(next, core.Options{Name: "api", MaxConcurrency: 64})
	if err != nil {
		panic(err)
	}
	defer h.Close()
	w := httptest.NewRecorder() // in a program: http.Server{Handler: h}
	h.ServeHTTP(w, httptest.NewRequest("GET", "/orders", nil))
	fmt.Println(w.Body)
	for op := range h.Operations(core.OperationQuery{}) {
		fmt.Println(op.Key, op.Status)
	}
	// Output:
	// operation of api
	// GET /orders succeeded
}
