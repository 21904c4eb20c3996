package core

// A Processor handles every signal it is given in the background, such as sending
// it to a collector of logs. Its Process is given signals as [Options.OnSignal] of
// a coordinator, as a handler of [Sink.Subscribe], or both; it never holds up
// whoever raises them. See [Dispatcher] for handlers by pattern.
//
// It is a coordinator of signals: they are started in the order in which they came,
// [Options.MaxConcurrency] of them at once, by default 4, so that with 1 they are
// handled one after the other. While [Options.MaxQueued] signals wait, by default
// 1000, each further one drops the one that has waited longest, and [Stats] says
// how many were. Like any coordinator it shows its operations, whose Key is the
// name of the signal, owns no goroutine while idle, and is brought to an end by
// Drain, which handles what waits, or Close, which accounts for it as cancelled.
//
// All methods are safe for concurrent use, from the handler as well.
type Processor struct {
	*engine
	signals *Coordinator[Signal]
}

var _ Inspector = (*Processor)(nil)

const (
	defaultProcessorConcurrency = 4
	defaultProcessorQueued      = 1000
)

// NewProcessor makes a processor, or says what is wrong with the options. The
// options are a coordinator's, except for the defaults of Name, "processor", of
// MaxConcurrency and of MaxQueued, that DropOldest is always on, and that Lanes and
// MaxPerKey are not accepted. The operations raise their signals on [Options.Sink],
// but not [SignalStarted] and [SignalStopped]; it may be the sink the processor
// listens to.
func NewProcessor(h Handler, opts Options) (*Processor, error) {
	if h == nil {
		return nil, errNoHandler
	}
	if opts.Name == "" {
		opts.Name = "processor"
	}
	if opts.MaxConcurrency == 0 {
		opts.MaxConcurrency = defaultProcessorConcurrency
	}
	if opts.MaxQueued == 0 {
		opts.MaxQueued = defaultProcessorQueued
	}
	c, err := newReactor(false, h.call, opts)
	if err != nil {
		return nil, err
	}
	return &Processor{c.engine, c}, nil
}

// Process queues a signal for the handler and returns at once. One that an
// operation of this processor has raised is not queued. After Complete, Drain or
// Close, and while a signal matches [Options.CancelOn], it is counted as rejected.
func (p *Processor) Process(s Signal) { react(p.signals, s) }
