package main

import (
	"context"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// pipeline has two coordinators with lanes of their own.
type pipeline struct {
	sink        *signals.Sink
	fetch, save *core.Coordinator[int]
	retried     *core.Coordinator[int]
	next        *pipeline
}

func newPipeline(sink *signals.Sink) *pipeline {
	p := &pipeline{sink: sink}
	opts := core.Options{Name: "fetch", Sink: sink, Classes: []core.Class{{Name: "web"}}}
	opts.Lanes = core.Must(core.ParseLanes("fast, slow"))
	opts.Lanes = append(opts.Lanes, core.Lane{Name: "late"})
	p.fetch = core.Must(core.NewCoordinator(p.run, opts))
	p.retried = core.Must(core.NewCoordinator(retry.Wrap(core.Must(retry.New(retry.Options{})), p.again), core.Options{Name: "retried"}))
	var err error
	p.save, err = newSaver(retry.Wrap(core.Must(retry.New(retry.Options{})), p.store))
	if err != nil {
		panic(err)
	}
	return p
}

func newSaver(work core.Work[int]) (*core.Coordinator[int], error) {
	return core.NewCoordinator(work, core.Options{Lanes: []core.Lane{{Name: "disk"}}})
}

func (p *pipeline) again(_ context.Context, n int) error {
	return p.retried.Do(context.Background(), n) // want `Do waits for the coordinator "retried"`
}

func (p *pipeline) run(ctx context.Context, n int) error {
	outer := context.Background()
	limited, cancel := context.WithTimeout(outer, time.Second)
	defer cancel()
	p.fetch.Lane("fast").Do(ctx, n)
	p.fetch.Lane("fast").Do(outer, n)                      // want `Do waits for the coordinator "fetch", whose body this is`
	p.fetch.Class("web").Lane("slow").Do(limited, n)       // want `Do waits for the coordinator "fetch"`
	defer func() { p.fetch.Drain(context.Background()) }() // want `Drain waits for the coordinator "fetch"`
	view := p.fetch.Cost(2)
	view.Do(context.WithoutCancel(ctx), n)
	future, _ := view.Submit(outer, n)
	future.Wait(outer) // want `Wait waits for the coordinator "fetch"`
	go func() { p.fetch.Do(outer, n) }()
	time.AfterFunc(1, func() { p.fetch.WaitIdle(outer) })
	p.next.fetch.Do(outer, n)
	other := p.next
	other.fetch.Do(outer, n)
	return p.save.Do(outer, n)
}

func (p *pipeline) store(ctx context.Context, n int) error {
	p.lock()       // want `lock returns the release of a signal that is held without a lease \(testdata/planted/own.go:\d+\), and the release is not kept`
	defer p.lock() // want `lock returns the release`
	defer p.lock()()
	_, err := p.tryLock(0) // want `tryLock returns the release`
	release, _ := p.tryLock(0)
	defer release()
	p.lease(time.Second)
	return err
}

func (p *pipeline) lock() func() {
	release := p.sink.Hold("stock.locked", "", 0)
	return release
}

func (p *pipeline) tryLock(lease time.Duration) (func(), error) {
	return p.sink.Hold("stock.locked", "", lease), nil
}

func (p *pipeline) lease(lease time.Duration) func() {
	return p.sink.Hold("stock.locked", "", lease)
}

func lanes(ctx context.Context, sink *signals.Sink) {
	p := newPipeline(sink)
	p.fetch.Lane("late").Enqueue(ctx, 1)
	p.fetch.Lane("disk").Enqueue(ctx, 1) // want `Lane of "fetch": its options have no lane "disk"`
	p.save.Lane("disk").Enqueue(ctx, 1)
	p.save.Lane("fast").Enqueue(ctx, 1) // want `Lane of p.save: its options have no lane "fast"`
	either := p.fetch
	if sink.Has("stock.locked") {
		either = p.save
	}
	either.Lane("fast").Enqueue(ctx, 1)
	either.Lane("hot").Enqueue(ctx, 1) // want `Lane of either: its options have no lane "hot"`
	urgent(p.save)
	lane(ctx, p.fetch, "web")    // want `Lane of "fetch" at testdata/planted/own.go:\d+: its options have no lane "web"`
	event(sink, "order", "paid") // the arguments are right
	watch(sink, "order", "paid")
	watch(sink, "order", "padi") // want `Has at testdata/planted/own.go:\d+: nothing raises "order.padi"; did you mean "order.paid"`
	done(sink, "payd")

	conf := settings{Options: core.Options{Sink: sink}}
	conf.CancelOn = "stock.lokced" // want `CancelOn: nothing raises "stock.lokced"; did you mean "stock.locked"`
	conf.Lanes = []core.Lane{{Name: "hot"}}
	embedded := core.Must(core.NewCoordinator(p.store, conf.Options))
	embedded.Lane("hot").Enqueue(ctx, 1)
	embedded.Lane("disk").Enqueue(ctx, 1) // want `Lane of embedded: its options have no lane "disk"`
	view, hold := embedded.Lane, sink.Hold
	view("hot")                              // want `Lane returns a view`
	view("hto").Enqueue(ctx, 1)              // want `Lane of embedded: its options have no lane`
	hold("stock.locked", "", 0)              // want `Hold without a lease`
	(*signals.Sink).Has(sink, "order.paied") // want `Has: nothing raises "order.paied"; did you mean "order.paid"`

	invoices.Raise(sink, "", 1)
	kind[string]("invoice.paid").Subscribe(sink, nil) // want `NewKind at testdata/planted/own.go:\d+: "invoice.paid" has the payload string here, and int at testdata/planted/own.go:\d+`
	s := senders{func(name string) { sink.Raise(name) }, map[string]func(string){"bill": func(name string) { sink.Raise("bill." + name) }}}
	s.send("bill.sent")
	s.by["bill"]("opened")
	sink.Subscribe("bill.sent, bill.opened", nil)
	sink.Subscribe("bill.opend", nil) // want `did you mean "bill.opened"`
}

var invoices = kind[int]("invoice.paid")

// kind is a helper that makes kinds.
func kind[T any](name string) signals.Kind[T] { return signals.NewKind[T](name) }

// senders raise through functions in fields and maps.
type senders struct {
	send func(name string)
	by   map[string]func(name string)
}

// settings are options and more.
type settings struct {
	core.Options
	File string
}

func urgent(c *core.Coordinator[int]) *core.Coordinator[int] {
	return c.Lane("fast") // want `Lane of c: its options have no lane "fast"`
}

func lane(ctx context.Context, c *core.Coordinator[int], name string) { c.Lane(name).Enqueue(ctx, 1) }

func event(sink *signals.Sink, noun, verb string) { sink.Raise(noun + "." + verb) }

func watch(sink *signals.Sink, noun, verb string) { sink.Has(noun + "." + verb) }

func done(sink *signals.Sink, verb string) {
	sink.Has("order." + verb) // want `Has: nothing raises "order.payd" with the argument at testdata/planted/own.go:\d+; did you mean "order.paid"`
}
