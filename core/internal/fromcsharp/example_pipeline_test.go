package fromcsharp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/registry"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// One operation raises a signal. Another operation looks it up and uses its data.
func Example_pipeline() {
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})

	// 1. Files are saved. Each operation stores its data and raises a signal.
	files := core.Must(core.NewCoordinator(func(ctx context.Context, up upload) error {
		path, err := save(ctx, up)
		if err != nil {
			return err
		}
		op := core.OperationFrom(ctx)
		op.Set("file", savedFile{Path: path, By: up.User, Size: len(up.Data)})
		op.Raise("file.saved")
		return nil
	}, core.Options{MaxConcurrency: 8, Sink: sink}))
	defer files.Close()

	// 2. Thumbnails are made from the data of another operation.
	thumbnails := core.Must(core.NewCoordinator(func(ctx context.Context, source core.OperationID) error {
		snapshot, ok := files.Lookup(source)
		if !ok {
			return errors.New("the source has left the window")
		}
		file, ok := core.Value[savedFile](snapshot, "file")
		if !ok {
			return errors.New("the source has left no file")
		}
		op := core.OperationFrom(ctx)
		op.Raise("thumbnail.generating")
		thumbnail, err := makeThumbnail(ctx, file.Path)
		if err != nil {
			return err
		}
		op.Set("thumbnail", thumbnail)
		op.Raise("thumbnail.complete")
		return nil
	}, core.Options{MaxConcurrency: 4, Sink: sink}))
	defer thumbnails.Close()

	// 3. The signal starts a thumbnail. While the queue of thumbnails is full, saving files waits.
	cancel := sink.Subscribe("file.saved", func(s signals.Signal) {
		if _, err := thumbnails.Enqueue(ctx, s.Operation); err != nil {
			sink.Raise("error.thumbnail_refused")
		}
	})
	defer cancel()

	core.Must(files.Enqueue(ctx, upload{Name: "photo.jpg", User: "alice"}))
	if err := errors.Join(files.Drain(ctx), thumbnails.Drain(ctx)); err != nil { // upstream first
		panic(err)
	}
	for op := range thumbnails.Operations(core.OperationQuery{Pattern: "thumbnail.complete"}) {
		fmt.Println(core.Value[string](op, "thumbnail"))
	}
	// Output: /srv/photo.jpg.thumb true
}

// The signal has the file as payload. So no operation has to be looked up, and none can be
// gone.
func Example_pipelineTyped() {
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})
	FileSaved := signals.NewKind[savedFile]("file.saved") // usually a package variable

	files := core.Must(core.NewCoordinator(func(ctx context.Context, up upload) error {
		path, err := save(ctx, up)
		if err != nil {
			return err
		}
		FileSaved.Raise(core.OperationFrom(ctx), up.Name, savedFile{Path: path, By: up.User})
		return nil
	}, core.Options{MaxConcurrency: 8, Sink: sink}))
	defer files.Close()

	thumbnails := core.Must(core.NewCoordinator(func(ctx context.Context, file savedFile) error {
		thumbnail, err := makeThumbnail(ctx, file.Path)
		fmt.Println(thumbnail, "for", file.By)
		return err
	}, core.Options{MaxConcurrency: 4, Sink: sink}))
	defer thumbnails.Close()

	defer FileSaved.Subscribe(sink, func(_ signals.Signal, file savedFile) {
		if _, err := thumbnails.Enqueue(ctx, file); err != nil {
			sink.Raise("error.thumbnail_refused")
		}
	})()

	if err := files.Do(ctx, upload{Name: "photo.jpg", User: "alice"}); err != nil {
		panic(err)
	}
	if err := thumbnails.Drain(ctx); err != nil {
		panic(err)
	}
	// Output: /srv/photo.jpg.thumb for alice
}

// A handler for each kind of signal.
func Example_routes() {
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})

	to := func(c core.Enqueuer[core.OperationID]) func(signals.Signal) {
		return func(s signals.Signal) {
			if _, err := c.Enqueue(ctx, s.Operation); err != nil {
				sink.Raise("error.refused")
			}
		}
	}
	thumbnails, cleanup, failures := newStage("thumbnails"), newStage("cleanup"), newStage("failures")

	sink.Subscribe("file.saved", to(thumbnails))
	sink.Subscribe("file.deleted", to(cleanup))
	sink.Subscribe("file.error.*", to(failures))

	sink.Raise("file.error.disk-full")
	sink.Raise("file.deleted")

	for _, stage := range []*core.Coordinator[core.OperationID]{thumbnails, cleanup, failures} {
		if err := stage.Drain(ctx); err != nil {
			panic(err)
		}
		fmt.Println(stage.Name(), stage.Stats().Succeeded)
	}
	// Output:
	// thumbnails 0
	// cleanup 1
	// failures 1
}

// A coordinator is a value: make it in main, and pass it on.
func Example_wiring() {
	jobs := core.Must(core.NewCoordinator(processJob, core.Options{MaxConcurrency: 8}))
	defer jobs.Close()

	mux := http.NewServeMux()
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		// r.Context() bounds how long this waits for room; the job outlives the request.
		if _, err := jobs.Enqueue(r.Context(), string(body)); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})

	response := httptest.NewRecorder() // a program calls http.ListenAndServe
	mux.ServeHTTP(response, httptest.NewRequest("POST", "/", strings.NewReader("data")))
	fmt.Println(response.Code)
	// Output: 202
}

// Coordinators by name, made when they are first asked for and drained in order.
func Example_registry() {
	ctx := context.Background()
	r := registry.New()
	defer r.Close()

	err := errors.Join(
		registry.Register(r, "", func() (*core.Coordinator[string], error) {
			return core.NewCoordinator(processJob, core.Options{MaxConcurrency: 8})
		}),
		registry.Register(r, "priority", func() (*core.Coordinator[string], error) {
			return core.NewCoordinator(processPriorityJob, core.Options{MaxConcurrency: 4})
		}),
	)
	if err != nil {
		panic(err)
	}

	// elsewhere
	jobs := core.Must(registry.Get[*core.Coordinator[string]](r, "priority"))
	core.Must(jobs.Enqueue(ctx, "data"))
	if err := r.Drain(ctx); err != nil {
		panic(err)
	}
	// Output: first of all: data
}

// One coordinator for each tenant or request, and shared ones.
func Example_scoped() {
	ctx := context.Background()
	r := registry.New()
	defer r.Close()

	err := registry.RegisterScoped(r, "jobs", func(*registry.Registry) (*core.Coordinator[string], error) {
		return core.NewCoordinator(processJob, core.Options{MaxConcurrency: 2})
	})
	if err != nil {
		panic(err)
	}

	tenant := r.Scope()
	defer tenant.Close() // closes the coordinators of the scope
	jobs := core.Must(registry.Get[*core.Coordinator[string]](tenant, "jobs"))
	fmt.Println(jobs.Do(ctx, "data"))
	// Output: <nil>
}

// These functions stand for your code.

type upload struct {
	Name, User string
	Data       []byte
}

type savedFile struct {
	Path, By string
	Size     int
}

func save(_ context.Context, up upload) (path string, err error) { return "/srv/" + up.Name, nil }

func makeThumbnail(_ context.Context, path string) (string, error) { return path + ".thumb", nil }

func newStage(name string) *core.Coordinator[core.OperationID] {
	return core.Must(core.NewCoordinator(func(context.Context, core.OperationID) error { return nil }, core.Options{Name: name}))
}

func processJob(context.Context, string) error { return nil }

func processPriorityJob(_ context.Context, job string) error {
	fmt.Println("first of all:", job)
	return nil
}
