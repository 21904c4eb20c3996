package flightrecorder

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/trace"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Recorded is the kind of the signal that says where a recording is. The key is the name of the recorder.
var Recorded = signals.NewKind[Recording]("flight.recorded")

// Failed is the kind of the signal that says why a recording could not be written, or why an old one could not be deleted.
// The key is the name of the recorder.
var Failed = signals.NewKind[error]("flight.failed")

// A Recording says where the two files of a recording are.
type Recording struct {
	Trace  string `json:"trace"`  // for go tool trace
	Report string `json:"report"` // JSON, a [Report]
	//ephemeral:raised
	Cause string `json:"cause"` // the name of the signal that caused it
}

// maxListed is how many operations of a coordinator, and how many signals, a report lists.
const maxListed = 1000

// A Report is the JSON beside a trace. Stats and Busy are by the name of the coordinator; give all of them different names.
type Report struct {
	Cause   signals.Signal        `json:"cause"`
	Stats   map[string]core.Stats `json:"stats"`
	Busy    map[string][]string   `json:"busy"`    // the oldest 1,000 operations that have not ended: the key, and what Explain says
	Signals []signals.Signal      `json:"signals"` // the newest 1,000 of the window, without payloads, oldest first
}

// Options configure a [Recorder]. On and Dir are required.
type Options struct {
	// On is the pattern of the signals that cause a recording; see [signals.Match]. It must not match "flight.recorded" and "flight.failed".
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
	// MaxBytes is about how large a trace is at most, in memory and on disk. 0 means 16 MiB.
	// A trace covers 10 seconds at least, if MaxBytes allow it.
	MaxBytes uint64
}

func (o Options) resolved(sink *signals.Sink) (Options, error) {
	o.Name, o.Keep, o.Pause = cmp.Or(o.Name, "flightrecorder"), cmp.Or(o.Keep, 10), cmp.Or(o.Pause, time.Minute)
	o.MaxBytes = cmp.Or(o.MaxBytes, 16<<20)
	_, err := os.ReadDir(o.Dir)
	switch {
	case sink == nil:
		return o, errors.New("flightrecorder: New needs a sink, not nil")
	case o.On == "":
		return o, errors.New("flightrecorder: Options.On is empty, but must be the pattern of a signal")
	case signals.Match(o.On, Recorded.Name()) || signals.Match(o.On, Failed.Name()):
		return o, fmt.Errorf("flightrecorder: Options.On is %q, but must not match the signals of recorders, flight.*", o.On)
	case err != nil:
		return o, fmt.Errorf("flightrecorder: Options.Dir must be a directory: %w", err)
	case o.Keep < 0:
		return o, fmt.Errorf("flightrecorder: Options.Keep is %d, but must be more than 0", o.Keep)
	}
	return o, nil
}

// A Recorder writes what the scheduler did in the last seconds, when a signal is raised. Make one with [New], and
// close it. All methods are safe for concurrent use.
type Recorder struct {
	opts   Options // resolved
	sink   *signals.Sink
	c      *core.Coordinator[signals.Signal] // its operations are the recordings
	flight *trace.FlightRecorder
	busy   atomic.Bool // a recording is written, or the tracing has ended
}

// New starts a recorder. Only one [trace.FlightRecorder] can run in a process, so New returns an error if there is one
// already. It also returns an error if the options are not valid. While it runs, the runtime collects trace events: each
// operation of a coordinator takes 2 to 3 microseconds more, and the events take MaxBytes of memory.
//
// A handler only asks for a recording. The files are written by an operation of the recorder, one at a time. During Pause, further
// signals cause no recording. If Pause is over while one is still written, at most one more waits.
func New(sink *signals.Sink, opts Options) (*Recorder, error) {
	opts, err := opts.resolved(sink)
	if err != nil {
		return nil, err
	}
	r := &Recorder{opts: opts, sink: sink}
	r.flight = trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: 10 * time.Second, MaxBytes: opts.MaxBytes})
	r.c = core.Must(core.NewCoordinator(r.work, core.Options{Name: opts.Name, MaxConcurrency: 1, MaxQueued: 1}))
	if err := r.flight.Start(); err != nil {
		return nil, fmt.Errorf("flightrecorder: %w", err)
	}
	var next atomic.Int64
	r.c.OnClosed(sink.Subscribe(opts.On, func(s signals.Signal) {
		if now, at := s.Time.UnixNano(), next.Load(); now >= at && next.CompareAndSwap(at, now+int64(opts.Pause)) {
			r.c.TryEnqueue(context.Background(), s)
		}
	}))
	return r, nil
}

// Flush waits until the recordings of all signals that were raised before are written. If ctx ends first, it returns the
// cause of ctx.
func (r *Recorder) Flush(ctx context.Context) error { return r.c.Flush(ctx) }

// Close ends the tracing. A recording that has not begun is dropped; one that has begun may fail. Close waits for it, but not in
// a handler. It may be called many times. It returns nil.
func (r *Recorder) Close() error {
	r.c.Close()
	r.stop()
	return nil
}

// stop ends the tracing, unless a recording is written: [trace.FlightRecorder] permits only one of both.
func (r *Recorder) stop() {
	if r.busy.CompareAndSwap(false, true) {
		r.flight.Stop()
	}
}

// work makes a recording. If Close did not wait for it, work ends the tracing.
func (r *Recorder) work(ctx context.Context, cause signals.Signal) error {
	recording, err := Recording{}, core.ErrClosed
	if r.busy.CompareAndSwap(false, true) {
		recording, err = r.record(cause)
	}
	if ctx.Err() != nil {
		r.stop()
	}
	if err == nil {
		Recorded.Raise(r.sink.Because(cause), r.opts.Name, recording)
		err = r.prune()
	}
	if err != nil {
		Failed.Raise(r.sink.Because(cause), r.opts.Name, err)
	}
	return err
}

// record writes both files. Busy is set. If one of them is not complete, it deletes both.
func (r *Recorder) record(cause signals.Signal) (got Recording, err error) {
	defer r.busy.Store(false)
	report, bad := json.MarshalIndent(r.report(cause), "", "\t") // first: it shows what waits now
	base := filepath.Join(r.opts.Dir, "flight-"+time.Now().UTC().Format("20060102T150405.000000000"))
	got = Recording{Trace: base + ".trace", Report: base + ".json", Cause: cause.Name}
	file, err := os.OpenFile(got.Trace, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return got, err
	}
	_, err = r.flight.WriteTo(file)
	if err = errors.Join(err, file.Close(), bad, os.WriteFile(got.Report, report, 0o600)); err != nil {
		os.Remove(got.Trace)
		os.Remove(got.Report)
	}
	return got, err
}

func (r *Recorder) report(cause signals.Signal) Report {
	report := Report{cause, map[string]core.Stats{}, map[string][]string{}, nil}
	for _, c := range r.opts.Coordinators {
		report.Stats[c.Name()], report.Busy[c.Name()] = c.Stats(), inspect.Busy(c, maxListed)
	}
	for s := range r.sink.Sense(signals.Query{}) {
		report.Signals = append(report.Signals[max(0, len(report.Signals)-maxListed+1):], s) // a window may have a million
	}
	return report
}

// ours matches the names of files that record writes.
const ours = "flight-????????T??????.?????????.*"

// prune deletes the oldest files, until Keep recordings stay.
func (r *Recorder) prune() error {
	all, err := fs.Glob(os.DirFS(r.opts.Dir), ours) // sorted by name, so the oldest is first
	for _, name := range all[:max(0, len(all)-2*r.opts.Keep)] {
		err = errors.Join(err, os.Remove(filepath.Join(r.opts.Dir, name)))
	}
	return err
}
