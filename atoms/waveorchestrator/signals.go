package waveorchestrator

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ephemeralgo/ephemeral/core"
)

// What the names of the signals of an orchestrator begin with. What follows is in
// the payload, an [Event], as well, and who it is about, the worker's name or the
// number of the wave, is the key.
//
// Match them as families: "worker.failed:*" are all failures,
// "worker.completed:db:*" what the worker db has completed.
const (
	// SignalStarted is raised when an execution begins.
	SignalStarted = "wave.orchestrator.started"
	// SignalCompleted is raised as SignalCompleted:duration={ms}:results={count}
	// when an execution has ended, in whichever way; the count is of the workers
	// that have completed.
	SignalCompleted = "wave.orchestrator.completed"
	// SignalWaveStarted is raised as SignalWaveStarted:wave={N}:workers={count},
	// with the number of workers that are not skipped. A wave whose workers all
	// are does not start.
	SignalWaveStarted = "wave.started"
	// SignalEarlyExit is raised as SignalEarlyExit:wave={N} when a result of
	// that wave was decisive; the payload says whose.
	SignalEarlyExit = "wave.early_exit"
	// SignalTimeout is raised as SignalTimeout:elapsed={ms} when
	// [Options.TotalTimeout] is over.
	SignalTimeout = "wave.timeout"

	// SignalWorkerStarted is raised as SignalWorkerStarted:{name}.
	SignalWorkerStarted = "worker.started"
	// SignalWorkerCompleted is raised as
	// SignalWorkerCompleted:{name}:duration={ms}.
	SignalWorkerCompleted = "worker.completed"
	// SignalWorkerFailed is raised as SignalWorkerFailed:{name}:error={message}
	// when a worker has returned an error or panicked. Of the message there are
	// 128 bytes, without commas, "*", "?" and control characters; the payload has
	// the error.
	SignalWorkerFailed = "worker.failed"
	// SignalWorkerTimeout is raised, instead of SignalWorkerFailed, as
	// SignalWorkerTimeout:{name}:duration={ms} when a worker has taken longer
	// than [Options.WorkerTimeout].
	SignalWorkerTimeout = "worker.timeout"
	// SignalWorkerAbandoned is raised as SignalWorkerAbandoned:{name} when a
	// worker has not returned within [Options.Grace].
	SignalWorkerAbandoned = "worker.abandoned"

	// SignalBreakerOpened is held as
	// SignalBreakerOpened:{name}:failures={count} from when a breaker opens for
	// as long as [Options.BreakerReset], or until Close, so that others can wait
	// for it to be over ([core.Options.DeferOn]). It has no payload and no
	// Source.
	SignalBreakerOpened = "circuit.opened"
	// SignalBreakerClosed is raised as SignalBreakerClosed:{name} when a probe
	// has completed.
	SignalBreakerClosed = "circuit.closed"
)

// An Event is the payload of an orchestrator's signals:
//
//	e, ok := signal.Payload().(waveorchestrator.Event)
//
// Which fields are set depends on the signal.
type Event struct {
	Execution core.OperationID // the operation that is the execution
	Worker    string
	Wave      int
	Workers   int           // SignalWaveStarted: that run; SignalCompleted: that have completed
	Duration  time.Duration // of the run, or of the execution so far
	Err       error         // why the worker failed
	Outcome   Outcome       // SignalCompleted
}

// names are those of the signals about a worker, or what they begin with.
type names struct {
	started, completed, failed, timedOut, abandoned, opened, closed string
}

func namesOf(worker string) names {
	return names{
		started:   SignalWorkerStarted + ":" + worker,
		completed: SignalWorkerCompleted + ":" + worker + ":duration=",
		failed:    SignalWorkerFailed + ":" + worker + ":error=",
		timedOut:  SignalWorkerTimeout + ":" + worker + ":duration=",
		abandoned: SignalWorkerAbandoned + ":" + worker,
		opened:    SignalBreakerOpened + ":" + worker + ":failures=",
		closed:    SignalBreakerClosed + ":" + worker,
	}
}

func waveStarted(key string, workers int) string {
	return SignalWaveStarted + ":wave=" + key + ":workers=" + strconv.Itoa(workers)
}

func raise(on core.Raiser, name, key string, e Event) {
	core.NewKind[Event](name).Raise(on, key, e)
}

// millis is d in whole milliseconds.
func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// maxMessage is how much of an error is in the name of a signal, in bytes.
const maxMessage = 128

// message is the text of an error as it can be part of a name. A panic of its Error
// method is part of the text.
func message(err error) string {
	text := fmt.Sprintf("%v", err)
	if len(text) > maxMessage {
		cut := maxMessage
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut]
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case r == ',':
			return ';'
		case r == '*', r == '?', r == utf8.RuneError, unicode.IsControl(r):
			return '_'
		}
		return r
	}, text)
	return strings.TrimRightFunc(text, unicode.IsSpace)
}
