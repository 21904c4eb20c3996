// Package tiers is the scenario of priority tiers. One coordinator has a lane for each kind
// of customer. A lane says which requests start first, how many may wait, and what a signal
// does to them: while "system.high_load" is held, standard requests wait and free ones are
// refused. A request that is refused gets an error that says why. Nothing is dropped silently.
package tiers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
)

var Scenario = scenario.Scenario{
	Name:  "tiers",
	Title: "Priority tiers: under high load some wait, some are refused, none is lost",
	Run:   run,
}

const (
	highLoad   = "system.high_load"   // held while the load is high
	normalLoad = "system.normal_load" // raised when the high load ends, for observers

	highFrom, highTo = 27, 67 // the load is high from request 27 to request 67
)

// lanes are the tiers, highest first.
var lanes = []core.Lane{
	{Name: "critical", Depth: 1},
	{Name: "premium", Depth: 4},
	{Name: "standard", Depth: 10, DeferOn: highLoad},
	{Name: "free", Depth: 20, CancelOn: highLoad},
}

// order is a fixed sequence of tiers, without chance: 5 % critical, 20 % premium,
// 35 % standard, 40 % free.
var order = strings.Fields(`
	critical free standard free premium standard free standard free premium
	standard free standard free premium standard free standard free premium`)

// counts are the results of the requests of a tier.
type counts struct {
	sent, accepted, full, shed int           // full and shed were refused at once
	late, completed            int           // late ones were accepted, and then refused in the queue
	started                    int           // requests that started while the load was high
	wait                       time.Duration // the longest wait of a completed request
}

func serve(ctx context.Context, tier string) error {
	select {
	case <-time.After(87 * time.Millisecond):
		core.OperationFrom(ctx).RaiseKey("request.completed", tier)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func run(ctx context.Context, s *scenario.Screen) error {
	// 40 requests come in each second, and about 34 can run: the queues grow.
	requests, err := core.NewCoordinator(serve, core.Options{
		Name: "requests", MaxConcurrency: 3, Lanes: lanes, Sink: s.Sink,
		MaxTracked: 100, // the window shows all requests: the table is made from it
	})
	if err != nil {
		return err
	}
	defer requests.Close()

	tiers := map[string]*counts{"critical": {}, "premium": {}, "standard": {}, "free": {}}
	var release func()
	var high, normal time.Time
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for i := range 100 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		switch i {
		case highFrom:
			release = s.Sink.Hold(highLoad, "", 0)
			defer release()
			high = time.Now()
			s.Printf("%s: standard waits, free is refused", highLoad)
		case highTo:
			normal = time.Now()
			release()
			s.Sink.Raise(normalLoad)
			s.Printf("%s: all lanes are open again", normalLoad)
		}
		name := order[i%len(order)]
		tier := tiers[name]
		tier.sent++
		_, err := requests.Lane(name).TryEnqueue(ctx, name)
		if err == nil {
			tier.accepted++
			continue
		}
		if errors.Is(err, core.ErrFull) {
			tier.full++
		} else if _, refused := errors.AsType[*core.RefusedError](err); refused {
			tier.shed++
		} else {
			return err
		}
		s.Sink.RaiseKey("request.refused", name)
		if tier.full+tier.shed == 1 {
			s.Printf("%s: %v", name, err)
		}
	}
	if err := requests.Drain(ctx); err != nil {
		return err
	}

	for op := range requests.Operations(core.OperationQuery{}) {
		tier := tiers[op.Lane]
		switch {
		case op.Status == core.StatusRefused:
			tier.late++
			continue
		case op.Started.After(high) && op.Started.Before(normal):
			tier.started++
		}
		tier.completed++
		tier.wait = max(tier.wait, op.Started.Sub(op.Enqueued))
	}
	return report(s, tiers, requests.Stats())
}

// report prints the table and the totals. A claim that is not true is an error.
func report(s *scenario.Screen, tiers map[string]*counts, total core.Stats) error {
	s.Printf("tier      sent  refused: full  load  accepted  later  done  max wait")
	for _, lane := range lanes {
		t := tiers[lane.Name]
		s.Printf("%-8s %5d %14d %5d %9d %6d %5d %7dms", lane.Name, t.sent, t.full, t.shed, t.accepted, t.late, t.completed, t.wait.Milliseconds())
		if t.sent != t.full+t.shed+t.accepted || t.accepted != t.late+t.completed {
			return fmt.Errorf("tiers: requests of tier %s are lost: %+v", lane.Name, *t)
		}
	}
	critical, premium := tiers["critical"], tiers["premium"]
	if critical.completed < critical.sent || premium.completed < premium.sent || tiers["standard"].started+tiers["free"].started > 0 {
		return errors.New("tiers: the high load has stopped the wrong requests")
	}
	s.Printf("under high load started: %d critical, %d premium, nothing else", critical.started, premium.started)
	s.Takeaway("%d sent: %d done, %d refused with a reason, 0 lost; critical: %d of %d", total.Enqueued+total.Rejected, total.Succeeded, total.Rejected+total.Refused, critical.completed, critical.sent)
	return nil
}
