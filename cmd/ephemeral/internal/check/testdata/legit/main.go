// Command legit uses names in many ways, all of them right.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/atoms/molecules"
	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/atoms/scheduledtasks"
	shared "github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/check/testdata/names"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/core/waves"
	"github.com/ephemeralgo/ephemeral/patterns/anomalydetector"
	"github.com/ephemeralgo/ephemeral/patterns/backpressure"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
	"github.com/ephemeralgo/ephemeral/patterns/jobs"
)

const service = "payments"

type notifier interface{ notify(what string) }

type onSink struct {
	signals.Raiser
	prefix string
}

func (o onSink) notify(what string) { o.Raise(o.prefix + what) }

type config struct {
	Gates []string `json:"gates"`
	Lane  string   `json:"lane"`
}

type event struct{ noun, verb string }

func (e event) String() string { return e.noun + "." + e.verb }

type topic string

func (t topic) done() string { return string(t) + ".done" }

var gates = map[string]string{"maintenance": "maintenance.begun", "inventory": "inventory.begun"}

type step struct{ name, on, then string }

// emit is a helper that takes two texts.
func emit[R signals.Raiser](on R, noun, verb string) {
	on.Raise(strings.Join([]string{noun, verb}, "."))
}

func all(patterns ...string) string { return strings.Join(patterns, ", ") }

type settings struct {
	core.Options
	File string
}

type worker struct{ *core.Coordinator[int] }

func (w *worker) start(other *worker) {
	w.Coordinator = core.Must(core.NewCoordinator(func(ctx context.Context, n int) error {
		return other.Coordinator.Do(context.Background(), n)
	}, core.Options{}))
}

type option func(*core.Options)

func withGate(pattern string) option { return func(o *core.Options) { o.DeferOn = pattern } }

func build(sink *signals.Sink, opts ...option) core.Options {
	o := core.Options{Sink: sink, CancelOn: "shutdown"}
	for _, set := range opts {
		set(&o)
	}
	return o
}

func main() {
	ctx, sink := context.Background(), signals.NewSink(signals.SinkOptions{})
	name := flag.String("name", "default", "")
	flag.Parse()

	var n notifier = onSink{sink, "mail."}
	n.notify("sent")
	sink.Has("mail.sent")

	for _, on := range gates {
		defer sink.Hold(on, "", 0)()
	}
	for key := range gates {
		sink.Raise(key + ".planned")
	}
	sink.Subscribe("maintenance.begun, inventory.*, maintenance.planned", nil)

	c, err := core.NewCoordinator(func(ctx context.Context, s string) error {
		op := core.OperationFrom(ctx)
		defer op.Hold("working", 0)()
		defer func() { op.Raise(s) }() //ephemeral:raises item.*
		emit(op, "parcel", "packed")
		op.Because(signals.Signal{}).Raise("parcel." + strconv.Itoa(len(s)))
		return nil
	}, build(sink, withGate("parcel.packed, item.special"), func(o *core.Options) {
		o.Lanes = core.Must(core.ParseLanes("hot:4, cold"))
		o.DeferOn += ", working"
	}))
	if err != nil {
		panic(err)
	}
	sink.Raise("shutdown")
	lane := "cold"
	if len(os.Args) > 1 {
		lane = "hot"
	}
	c.Lane(lane).Enqueue(ctx, "a")
	view := c.Lane("hot")
	view.Enqueue(ctx, "b")

	later := core.Options{Sink: sink, Lanes: []core.Lane{{Name: "a"}}}
	later.Lanes = append(later.Lanes, core.Lane{Name: "hot"})
	core.Must(core.NewCoordinator(func(context.Context, string) error { return nil }, later)).Lane("hot").Enqueue(ctx, "x")
	wide := settings{Options: core.Options{Lanes: []core.Lane{{Name: "a"}}}}
	wide.Sink, wide.Lanes = sink, append(wide.Lanes, core.Lane{Name: "b"})
	embedded := core.Must(core.NewCoordinator(func(context.Context, string) error { return nil }, wide.Options))
	embedded.Lane("a").Enqueue(ctx, "x")
	wide.Options.Lanes = append(wide.Options.Lanes, core.Lane{Name: "c"})
	part := core.Options{Lanes: append([]core.Lane{}, wide.Lanes...)}
	core.Must(core.NewCoordinator(func(context.Context, string) error { return nil }, part)).Lane("c").Enqueue(ctx, "x")
	into := (*core.Coordinator[string]).Lane
	into(embedded, "b").Enqueue(ctx, "x")
	lanes := []core.Lane{{Name: "copied"}, {Name: "set"}}
	copy(lanes, later.Lanes)
	later.Lanes[1].Name = "later"
	core.Must(core.NewCoordinator(func(context.Context, string) error { return nil }, core.Options{Lanes: lanes})).Lane("hot").Enqueue(ctx, "x")
	core.Must(core.NewCoordinator(func(context.Context, string) error { return nil }, later)).Lane("later").Enqueue(ctx, "x")
	later.Lanes = []core.Lane{later.Lanes[0], {Name: "last"}}
	core.Must(core.NewCoordinator(func(context.Context, string) error { return nil }, later)).Lane("last").Enqueue(ctx, "x")
	new(worker).start(new(worker))
	sink.Raise(fmt.Sprint("numbers", 1, 2))
	sink.Has("numbers1 2")
	either := c
	if *name == "" {
		either = core.Must(core.NewCoordinator(func(context.Context, string) error { return nil }, core.Options{}))
	}
	either.Lane("cold").Enqueue(ctx, "y")

	var conf config
	json.Unmarshal([]byte(`{"gates":["a.b"]}`), &conf)
	for _, g := range conf.Gates {
		sink.Subscribe(g, nil)
	}
	if conf.Lane != "" {
		c.Lane(conf.Lane).Enqueue(ctx, "c")
	}
	sink.Subscribe(cmp.Or(os.Getenv("GATE"), "mail.*"), nil)
	sink.Subscribe(all("mail.sent", "parcel.*"), nil)
	sink.Subscribe(fmt.Sprintf("mail.%s", *name), nil)
	sink.Monitor("parcel.?", time.Minute)

	events := []event{{"user", "created"}, {"user", "deleted"}}
	for _, e := range events {
		sink.Raise(e.String())
	}
	sink.Subscribe("user.created, user.deleted", nil)
	jobsDone := topic("import")
	sink.Raise(jobsDone.done())
	sink.WaitFor(ctx, topic("import").done())
	names := make(chan string, 1)
	names <- "late"
	sink.Scoped("a", "b", "c").Raise("x")
	sink.Has("a.b.c.x")
	raise := sink.Raise
	raise("by.value")
	sink.Has("by.value")

	b := core.Must(circuitbreaker.New(sink, circuitbreaker.Options{Name: service, Failure: "pay.failed"}))
	_ = circuitbreaker.Wrap(b, func(context.Context, int) error { return nil })
	sink.Has("circuit.open." + service)
	sink.Has("circuit.*")
	circuitbreaker.Changes.Subscribe(sink, func(signals.Signal, circuitbreaker.Change) {})
	_, _ = anomalydetector.New(sink, anomalydetector.Options{Pattern: "pay.*"})
	sink.Has("anomaly.detector")
	backpressure.New(func(context.Context, int) error { return nil }, core.Options{Sink: sink})
	sink.Has("backpressure.any")
	sink.Has(retry.SignalExhausted)
	retry.Events.Named(retry.SignalExhausted).Subscribe(sink, func(signals.Signal, retry.Event) {})
	_, _ = data.New[string, int](nil, data.Options[int]{Name: "orders"})
	data.Saved("orders").Subscribe(sink, func(signals.Signal, struct{}) {})
	_, _ = scheduledtasks.New([]scheduledtasks.Definition{{Name: "n", Cron: "@daily", Signal: "night.begun"}}, scheduledtasks.TargetFunc(scheduledtasks.Raise), scheduledtasks.Options{Sink: sink})
	sink.Has("night.begun")
	steps := []step{{"one", "user.created", "one.done"}, {"two", "one.done", "two.done"}}
	for _, s := range steps {
		_, _ = molecules.NewTrigger(sink, s.on, func(ctx context.Context, _ signals.Signal) error {
			core.OperationFrom(ctx).Raise(s.then)
			return nil
		}, molecules.TriggerOptions{Name: s.name})
	}
	sink.Has("two.done")
	_, _ = waves.New([]waves.Stage{{Trigger: "two.done", OnComplete: "wave.done"}}, "wave.done", core.Options{Sink: sink})
	group := jobs.Group{Prefix: "shop"}
	_, _ = jobs.New(sink, group.Jobs(jobs.On("sold", nil, jobs.Options{EmitOnStart: "a.started, a.logged", Await: []string{"a.logged"}})), core.Options{})
	emit(sink, "shop", "sold")
	jobs.Failed.Subscribe(sink, func(signals.Signal, jobs.Failure) {})
	sink.Has("job.failed:*")
	sink.Subscribe("*", func(s signals.Signal) {
		sink.Because(s).RaiseKey("seen."+s.Name, s.Key)
		if _, ok := strings.CutPrefix(s.Name, "mail."); ok || s.Name == "mail.sent" {
			return
		}
	})
	sink.Has("seen.mail.sent")
	sink.Retract("shutdown")
	for name := range shared.Doors {
		sink.Raise(name)
	}
	sink.Has("door.open")
}
