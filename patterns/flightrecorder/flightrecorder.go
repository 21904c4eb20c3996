package flightrecorder

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/trace"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Recorded is the kind of the signal that says where a recording is. The key is the name of the recorder.
var Recorded = core.NewKind[Recording]("flight.recorded")

// Failed is the kind of the signal that says why a recording could not be written, or why an old one could not be deleted.
// The key is the name of the recorder.
var Failed = core.NewKind[error]("flight.failed")

// A Recording says where the two files of a recording are.
type Recording struct {
	Trace  string `json:"trace"`  // for go tool trace
	Report string `json:"report"` // JSON, a [Report]
	Bytes  int64  `json:"bytes"`  // of the trace
	//ephemeral:raised
	Cause string `json:"cause"` // the name of the signal that caused it
}

// Options configure a [Recorder]. On and Dir are required.
type Options struct {
	// On is the pattern of the signals that cause a recording; see [core.Match]. It must not match "flight.recorded" and "flight.failed".
	//
	//ephemeral:pattern
	On string
	// Dir is an existing directory for the files. Two recorders need different directories.
	Dir string
	// Coordinators are asked why their operations wait. The zero value means none: then the report has only the signals.
	Coordinators []core.Inspector
	// Name is the name of the recorder. "" means "flightrecorder".
	Name string
	// Keep is how many recordings stay in Dir; the oldest are deleted. 0 means 10.
	Keep int
	// Pause is how long no further recording is made after one has begun. 0 means one minute, negative none.
	Pause time.Duration
	// MinAge is how much time a trace covers at least, if MaxBytes allow it. 0 means 10 seconds.
	MinAge time.Duration
	// MaxBytes is about how large a trace is at most, in memory and on disk. 0 means 16 MiB.
	MaxBytes uint64
}

func (o Options) resolved(sink *core.Sink) (Options, error) {
	o.Name, o.Keep, o.Pause = cmp.Or(o.Name, "flightrecorder"), cmp.Or(o.Keep, 10), cmp.Or(o.Pause, time.Minute)
	o.MinAge, o.MaxBytes = cmp.Or(o.MinAge, 10*time.Second), cmp.Or(o.MaxBytes, 16<<20)
	info, err := os.Stat(o.Dir)
	switch {
	case sink == nil:
		return o, errors.New("flightrecorder: New needs a sink, not nil")
	case o.On == "":
		return o, errors.New("flightrecorder: Options.On is empty, but must be the pattern of a signal")
	case core.Match(o.On, Recorded.Name()) || core.Match(o.On, Failed.Name()):
		return o, fmt.Errorf("flightrecorder: Options.On is %q, but must not match the signals of recorders, flight.*", o.On)
	case err != nil:
		return o, fmt.Errorf("flightrecorder: Options.Dir: %w", err)
	case !info.IsDir():
		return o, fmt.Errorf("flightrecorder: Options.Dir is %q, but must be a directory", o.Dir)
	case o.Keep < 0 || o.MinAge < 0:
		return o, fmt.Errorf("flightrecorder: Options.Keep is %d and MinAge is %v, but both must be more than 0", o.Keep, o.MinAge)
	}
	return o, nil
}

// A Recorder writes what the scheduler did in the last seconds, when a signal is raised. Make one with [New], and
// close it. All methods are safe for concurrent use.
type Recorder struct {
	opts Options // resolved
	sink *core.Sink
	c    *core.Coordinator[core.Signal] // its operations are the recordings
	does atomic.Int32                   // one of the constants below
}

// What a recorder does. [trace.FlightRecorder] must not be stopped while it writes: if the end comes then, who
// writes stops it.
const (
	waits int32 = iota
	writes
	ended
)

// New starts a recorder. Only one [trace.FlightRecorder] can run in a process, so New returns an error if there is one
// already. It also returns an error if the options are not valid. While it runs, the runtime collects trace events: each
// operation of a coordinator takes 2 to 3 microseconds more, and the events take MaxBytes of memory.
//
// A handler only asks for a recording. The files are written by an operation of the recorder, one at a time. During Pause, further
// signals cause no recording. If Pause is over while one is still written, at most one more waits.
func New(sink *core.Sink, opts Options) (*Recorder, error) {
	opts, err := opts.resolved(sink)
	if err != nil {
		return nil, err
	}
	flight := trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: opts.MinAge, MaxBytes: opts.MaxBytes})
	if err := flight.Start(); err != nil {
		return nil, fmt.Errorf("flightrecorder: %w", err)
	}
	r := &Recorder{opts: opts, sink: sink}
	r.c, err = core.NewCoordinator(func(_ context.Context, cause core.Signal) error {
		recording, err := r.record(flight, cause)
		if err == nil {
			Recorded.Raise(sink.Because(cause), opts.Name, recording)
			err = r.prune()
		}
		if err != nil {
			Failed.Raise(sink.Because(cause), opts.Name, err)
		}
		return err
	}, core.Options{Name: opts.Name, MaxConcurrency: 1, MaxQueued: 1})
	if err != nil {
		flight.Stop()
		return nil, fmt.Errorf("flightrecorder: %w", err)
	}
	var next atomic.Int64
	cancel := sink.Subscribe(opts.On, func(s core.Signal) {
		if now, at := s.Time.UnixNano(), next.Load(); now >= at && next.CompareAndSwap(at, now+int64(opts.Pause)) {
			r.c.TryEnqueue(context.Background(), s)
		}
	})
	r.c.OnClosed(func() {
		if cancel(); r.does.Swap(ended) == waits {
			flight.Stop()
		}
	})
	return r, nil
}

// Name is Options.Name.
func (r *Recorder) Name() string { return r.opts.Name }

// Flush waits until the recordings of all signals that were raised before are written. If ctx ends first, it returns the
// cause of ctx.
func (r *Recorder) Flush(ctx context.Context) error { return r.c.Flush(ctx) }

// Close ends the tracing. A recording that has not begun is dropped; one that has begun may fail. Close waits for it, but not in
// a handler. It may be called many times. It returns nil.
func (r *Recorder) Close() error { return r.c.Close() }

// Sink is the sink whose signals cause recordings, and on which [Recorded] and [Failed] are raised.
func (r *Recorder) Sink() *core.Sink { return r.sink }

// record writes both files. A file that is not complete is deleted.
func (r *Recorder) record(flight *trace.FlightRecorder, cause core.Signal) (got Recording, err error) {
	report := r.report(cause) // first: it shows what waits now
	base := filepath.Join(r.opts.Dir, "flight-"+time.Now().UTC().Format("20060102T150405.000000000"))
	got = Recording{Trace: base + ".trace", Report: base + ".json", Cause: cause.Name}
	defer func() {
		if err != nil {
			os.Remove(got.Trace)
			os.Remove(got.Report)
		}
	}()
	file, err := os.OpenFile(got.Trace, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return got, err
	}
	got.Bytes, err = r.write(flight, file)
	if err := errors.Join(err, file.Close()); err != nil {
		return got, err
	}
	text, err := json.MarshalIndent(report, "", "\t")
	return got, errors.Join(err, os.WriteFile(got.Report, text, 0o600))
}

func (r *Recorder) write(flight *trace.FlightRecorder, to io.Writer) (n int64, err error) {
	if !r.does.CompareAndSwap(waits, writes) {
		return 0, core.ErrClosed
	}
	n, err = flight.WriteTo(to)
	if !r.does.CompareAndSwap(writes, waits) {
		flight.Stop()
	}
	return n, err
}

// ours matches the names of files that record writes.
const ours = "flight-????????T??????.?????????.*"

// prune deletes the oldest files, until Keep recordings stay.
func (r *Recorder) prune() error {
	all, err := os.ReadDir(r.opts.Dir) // sorted by name, so the oldest is first
	all = slices.DeleteFunc(all, func(f fs.DirEntry) bool { is, _ := filepath.Match(ours, f.Name()); return !is })
	for _, f := range all[:max(0, len(all)-2*r.opts.Keep)] {
		err = errors.Join(err, os.Remove(filepath.Join(r.opts.Dir, f.Name())))
	}
	return err
}
