package flightrecorder_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/trace"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/flightrecorder"
)

// start starts a recorder for the signal "alarm", and returns what it has recorded so far.
func start(t *testing.T, sink *signals.Sink, opts flightrecorder.Options) (*flightrecorder.Recorder, *[]flightrecorder.Recording) {
	opts.On = "alarm"
	r, err := flightrecorder.New(sink, opts)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	recordings := new([]flightrecorder.Recording)
	t.Cleanup(flightrecorder.Recorded.Subscribe(sink, func(s signals.Signal, got flightrecorder.Recording) {
		assert.Equal(t, "flightrecorder", s.Key)
		assert.Equal(t, []string{"alarm", s.Name}, s.Path())
		*recordings = append(*recordings, got)
	}))
	return r, recordings
}

// The trace has the format of Go, and the report says why operations wait.
func TestRecording(t *testing.T) {
	sink, begun, free := signals.NewSink(signals.SinkOptions{Capacity: 5000}), make(chan struct{}, 2), make(chan struct{})
	c := core.Must(core.NewCoordinator(func(context.Context, int) error { begun <- struct{}{}; <-free; return nil }, core.Options{Name: "orders", MaxConcurrency: 1}))
	for i := range 2 {
		core.Must(c.Enqueue(t.Context(), i))
	}
	<-begun
	for range 1500 {
		sink.Raise("old")
	}
	sink.RaiseKey("before", "k")
	r, recordings := start(t, sink, flightrecorder.Options{Dir: t.TempDir(), Coordinators: []core.Inspector{c}})
	sink.Raise("alarm")
	sink.Raise("alarm") // too early for another one
	require.NoError(t, r.Flush(t.Context()))
	require.Len(t, *recordings, 1)
	got := (*recordings)[0]
	data, err := os.ReadFile(got.Trace)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(data), "go 1."))
	data, err = os.ReadFile(got.Report)
	require.NoError(t, err)
	var report flightrecorder.Report
	require.NoError(t, json.Unmarshal(data, &report))
	assert.Equal(t, "alarm", report.Cause.Name)
	assert.Equal(t, 1, report.Stats["orders"].Running)
	require.Len(t, report.Busy["orders"], 2)
	assert.Contains(t, report.Busy["orders"][1], "the only slot is taken by operation")
	require.Len(t, report.Signals, 1000, "the newest ones")
	isBefore := func(s signals.Signal) bool { return s.Name == "before" && s.Key == "k" }
	assert.Greater(t, slices.IndexFunc(report.Signals, isBefore), 900)
	assert.Equal(t, "old", report.Signals[0].Name)
	close(free)
	require.NoError(t, c.Drain(t.Context()))
}

// Without a pause, each signal is recorded that comes while no other one is written. Only the newest recordings stay, and files
// of others are not touched.
func TestKeep(t *testing.T) {
	dir, sink := t.TempDir(), signals.NewSink(signals.SinkOptions{})
	others := []string{filepath.Join(dir, "another.trace"), filepath.Join(dir, "flight-0.trace")}
	for _, other := range others {
		require.NoError(t, os.WriteFile(other, nil, 0o600))
	}
	r, recordings := start(t, sink, flightrecorder.Options{Dir: dir, Keep: 2, Pause: -1})
	for range 4 {
		sink.Raise("alarm")
		require.NoError(t, r.Flush(t.Context()))
	}
	require.Len(t, *recordings, 4)
	files, err := filepath.Glob(filepath.Join(dir, "flight-*"))
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{others[1], (*recordings)[2].Trace, (*recordings)[2].Report, (*recordings)[3].Trace, (*recordings)[3].Report}, files)
	assert.FileExists(t, others[0])
}

// If the files cannot be written, a signal says why. The next one may work.
func TestFailure(t *testing.T) {
	dir, sink := filepath.Join(t.TempDir(), "flights"), signals.NewSink(signals.SinkOptions{})
	require.NoError(t, os.Mkdir(dir, 0o700))
	r, recordings := start(t, sink, flightrecorder.Options{Dir: dir, Pause: -1})
	var failures []error
	defer flightrecorder.Failed.Subscribe(sink, func(_ signals.Signal, err error) { failures = append(failures, err) })()
	require.NoError(t, os.Remove(dir))
	sink.Raise("alarm")
	require.NoError(t, r.Flush(t.Context()))
	require.Len(t, failures, 1)
	assert.ErrorIs(t, failures[0], os.ErrNotExist)
	require.NoError(t, os.Mkdir(dir, 0o700))
	sink.Raise("alarm")
	require.NoError(t, r.Flush(t.Context()))
	assert.Len(t, *recordings, 1)
}

type broken struct{ core.Control }

func (broken) Stats() core.Stats { panic("in Stats") }

// A panic of a coordinator fails the operation, and Close ends the tracing.
func TestPanic(t *testing.T) {
	sink, c := signals.NewSink(signals.SinkOptions{}), core.Must(core.NewCoordinator(func(context.Context, int) error { return nil }, core.Options{}))
	r, recordings := start(t, sink, flightrecorder.Options{Dir: t.TempDir(), Coordinators: []core.Inspector{broken{c.Control}}})
	sink.Raise("alarm")
	require.NoError(t, r.Flush(t.Context()))
	require.NoError(t, r.Close())
	assert.Empty(t, *recordings)
	assert.False(t, trace.IsEnabled())
}

// Close while a recording is written waits for it, and leaves no part of one.
func TestCloseWhileRecording(t *testing.T) {
	dir, sink := t.TempDir(), signals.NewSink(signals.SinkOptions{})
	recorded := sink.Monitor(flightrecorder.Recorded.Name(), 0)
	defer recorded.Stop()
	for range 20 {
		r, err := flightrecorder.New(sink, flightrecorder.Options{On: "alarm", Dir: dir, Keep: 100})
		require.NoError(t, err)
		sink.Raise("alarm")
		require.NoError(t, r.Close())
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, files, 2*recorded.Count())
	}
}

// There is one recorder in a process. After its end another one can start, and nothing is left on the sink.
func TestOneAtATime(t *testing.T) {
	sink, opts := signals.NewSink(signals.SinkOptions{}), flightrecorder.Options{On: "alarm", Dir: t.TempDir()}
	coretest.NothingLeft(t, sink, func() {
		for range 2 {
			r, err := flightrecorder.New(sink, opts)
			require.NoError(t, err)
			_, err = flightrecorder.New(sink, opts)
			assert.ErrorContains(t, err, "flightrecorder: ")
			assert.True(t, trace.IsEnabled())
			require.NoError(t, errors.Join(r.Close(), r.Close()))
			assert.False(t, trace.IsEnabled())
			sink.Raise("alarm")
		}
	})
}

func TestMistakes(t *testing.T) {
	sink, dir := signals.NewSink(signals.SinkOptions{}), t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for want, opts := range map[string]flightrecorder.Options{
		"Options.On is empty":           {Dir: dir},
		"must not match":                {On: "flight.*", Dir: dir},
		"Dir must be a directory: open": {On: "alarm", Dir: filepath.Join(dir, "none")},
		"Options.Dir must be a dir":     {On: "alarm", Dir: file},
		"Keep is -1":                    {On: "alarm", Dir: dir, Keep: -1},
	} {
		_, err := flightrecorder.New(sink, opts)
		assert.ErrorContains(t, err, want)
	}
	_, err := flightrecorder.New(nil, flightrecorder.Options{On: "alarm", Dir: dir})
	assert.ErrorContains(t, err, "needs a sink")
}

// In a recording, an operation is a task with regions for its body and for Suspend, and with log
// entries for its waits. A task begun by a body is a part of the task of that body.
func TestTasks(t *testing.T) {
	if testing.Short() {
		t.Skip("go tool trace is built first")
	}
	sink := signals.NewSink(signals.SinkOptions{})
	var outer *core.Coordinator[int]
	inner := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error {
		for { // it ends when the other body waits for it
			if x, _ := outer.Explain(core.OperationFrom(ctx).Parent()); strings.Contains(x.String(), "its body waits for operation") {
				return nil
			}
			runtime.Gosched()
		}
	}, core.Options{Name: "inner"}))
	outer = core.Must(core.NewKeyedCoordinator(func(int) string { return "a key" }, func(ctx context.Context, n int) error {
		trace.Log(ctx, "own", "entry")
		return core.OperationFrom(ctx).Suspend(ctx, "tea", func(ctx context.Context) error { return inner.Do(ctx, n) })
	}, core.Options{Name: "outer", MaxConcurrency: 2, MaxQueued: 2, OnDone: func(core.Snapshot) { sink.Raise("alarm") }}))
	r, recordings := start(t, sink, flightrecorder.Options{Dir: t.TempDir(), Pause: -1})
	outer.Pause()
	require.NoError(t, errors.Join(second(outer.Enqueue(t.Context(), 1)), second(outer.Enqueue(t.Context(), 2))))
	require.ErrorIs(t, second(outer.TryEnqueue(t.Context(), 3)), core.ErrFull)
	outer.Resume()
	require.NoError(t, errors.Join(outer.Drain(t.Context()), inner.Drain(t.Context()), r.Flush(t.Context())))
	events, err := exec.Command("go", "tool", "trace", "-d=parsed", (*recordings)[1].Trace).Output()
	require.NoError(t, err)
	for what, n := range map[string]int{
		`TaskBegin .* Type="outer"`: 3, `TaskBegin .* Parent=\d{1,9} Type="inner"`: 2, `TaskEnd .* Type="(?:outer|inner)"`: 5, `Log .* Category="ended" Message="rejected"`: 1,
		`RegionBegin .* Type="outer: body"`: 2, `RegionEnd .* Type="outer: body"`: 2, `RegionBegin .* Type="outer: suspended"`: 2,
		`Log .* Task=\d+ Category="own" Message="entry"`: 2, `Log .* Category="waits" Message="the coordinator is paused"`: 2,
		`Log .* Category="waits" Message="tea"`: 2, `Log .* Category="waited" Message="tea"`: 2,
		`Log .* Category="waits" Message="its body waits for operation \d+ of \\"inner\\""`: 2,
	} {
		assert.Len(t, regexp.MustCompile(`(?m)^M=.* `+what+`$`).FindAll(events, -1), n, what)
	}
}

func second(_ core.OperationID, err error) error { return err }
