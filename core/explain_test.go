package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// explain returns why an operation waits, in words.
func explain(t testing.TB, c core.Inspector, id core.OperationID) string {
	t.Helper()
	synctest.Wait()
	x, ok := c.Explain(id)
	coretest.Check(t, ok, "operation %d: got no explanation", id)
	checkEqual(t, "explained operation", x.Operation, id)
	if text := x.String(); strings.ContainsAny(text, "\n\t") {
		t.Errorf("got %q, want one line", text)
	}
	return x.String()
}

// checkExplained compares an explanation; "#" in want stands for its operation's
// id, and %d for those of others.
func checkExplained(t testing.TB, c core.Inspector, id core.OperationID, want string, others ...any) {
	t.Helper()
	want = strings.ReplaceAll(fmt.Sprintf(want, others...), "#", fmt.Sprint(id))
	checkEqual(t, "explanation", explain(t, c, id), want)
}

func TestExplainLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 2})
		first, second := newGate(), newGate()
		a := enqueue(t, c, first.body)
		time.Sleep(time.Second)
		b := enqueue(t, c, second.body)
		time.Sleep(time.Second)
		waiting, behind := enqueue(t, c, quick), enqueue(t, c, quick)
		checkExplained(t, c, a, "operation # is running")
		checkExplained(t, c, waiting, "operation # is pending: all 2 slots are taken, the longest by operation %d, for 2s", a)
		checkExplained(t, c, behind, "operation # is pending: all 2 slots are taken, the longest by operation %d, for 2s; 1 item before it goes first", a)
		c.SetMaxConcurrency(1)
		checkExplained(t, c, waiting, "operation # is pending: 2 of 1 slots are taken, the longest by operation %d, for 2s", a)
		first.open()
		checkExplained(t, c, waiting, "operation # is pending: the only slot is taken by operation %d, for 1s", b)
		c.Pause()
		checkExplained(t, c, waiting, "operation # is pending: the coordinator is paused; the only slot is taken by operation %d, for 1s", b)
		second.open()
		checkExplained(t, c, waiting, "operation # is pending: the coordinator is paused")
		checkExplained(t, c, behind, "operation # is pending: the coordinator is paused; 1 item before it goes first")
		third := enqueue(t, c, quick)
		checkExplained(t, c, third, "operation # is pending: the coordinator is paused; 2 items before it go first")
		c.Resume()
		checkExplained(t, c, waiting, "operation # has succeeded")
	})
}

// The slots of a lane, a class and a key, and the items of higher lanes.
func TestExplainPlaces(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := keyedBodies(t, core.Options{MaxConcurrency: 8, MaxPerKey: 2, Lanes: lanes(t, "hot, normal, slow:1"), Classes: []core.Class{{Name: "big", Limit: 2}}})
		g := newGate()
		slow := enqueue(t, c.Lane("slow"), keyedBody{"", g.body})
		time.Sleep(time.Second)
		ada := enqueue(t, c, keyedBody{"ada", g.body})
		enqueue(t, c, keyedBody{"ada", g.body})
		big := enqueue(t, c.Class("big"), keyedBody{"", g.body})
		enqueue(t, c.Class("big"), keyedBody{"", g.body})
		time.Sleep(1500 * time.Millisecond)
		next := enqueue(t, c.Lane("slow"), keyedBody{"", quick})
		const lane = `the only slot of lane "slow" is taken by operation %[1]d, for 2.5s`
		checkExplained(t, c, next, `operation # is pending: `+lane, slow)
		key := enqueue(t, c, keyedBody{"ada", quick})
		checkExplained(t, c, key, `operation # is pending: all 2 slots of key "ada" are taken, the longest by operation %d, for 1.5s`, ada)
		behind := enqueue(t, c, keyedBody{"ada", quick})
		checkExplained(t, c, behind, `operation # is pending: all 2 slots of key "ada" are taken, the longest by operation %d, for 1.5s; 1 item before it goes first`, ada)
		class := enqueue(t, c.Class("big"), keyedBody{"", quick})
		checkExplained(t, c, class, `operation # is pending: all 2 slots of class "big" are taken, the longest by operation %d, for 1.5s`, big)
		checkError(t, "SetMaxConcurrency", c.SetMaxConcurrency(5), nil)
		const all = "all 5 slots are taken, the longest by operation %[1]d, for 2.5s; "
		checkExplained(t, c, next, `operation # is pending: `+all+lane+`; 3 items of lanes above "slow" go first`, slow)
		for id := range c.Operations(core.OperationQuery{Lane: "normal", Status: core.StatusPending}) {
			c.Cancel(id.ID, nil)
		}
		enqueue(t, c.Lane("hot"), keyedBody{"bob", quick})
		checkExplained(t, c, next, `operation # is pending: `+all+lane+`; 1 item of lanes above "slow" goes first`, slow)
		bob := enqueue(t, c, keyedBody{"bob", quick})
		checkExplained(t, c, bob, `operation # is pending: `+all+`1 item of lanes above "normal" goes first`, slow)
		g.open()
	})
}

// Signals, with what is left of their leases and ages.
func TestExplainSignals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{MaxAge: time.Minute})
		opts := core.Options{Name: "orders", Sink: sink, MaxConcurrency: 1, DeferOn: "wait.*", ResumeOn: "go", CancelOn: "stop", MaxDefer: 10 * time.Second, MaxAge: -1}
		c := bodies(t, opts)
		c.Pause()
		id := enqueue(t, c, quick)
		const paused = "operation # is pending: the coordinator is paused"
		checkExplained(t, c, id, paused)

		sink.Raise("wait.aged")
		time.Sleep(time.Second)
		checkExplained(t, c, id, paused+`; deferred for 9s at most because of signal "wait.aged", which ends in 59s`)
		release := sink.Hold("wait.held", "db", 0)
		checkExplained(t, c, id, paused+`; deferred because of held signal "wait.held" for "db"; deferred because of signal "wait.aged", which ends in 59s`)
		release()
		sink.Hold("wait.leased", "", 5*time.Second)
		time.Sleep(2 * time.Second)
		checkExplained(t, c, id, paused+`; deferred because of held signal "wait.leased", which ends in 3s; deferred because of signal "wait.aged", which ends in 57s`)
		time.Sleep(3 * time.Second)
		checkExplained(t, c, id, paused+`; deferred for 4s at most because of signal "wait.aged", which ends in 54s`)
		sink.Raise("stop")
		checkExplained(t, c, id, paused+`; will be refused because of signal "stop", which ends in 1m0s; deferred for 4s at most because of signal "wait.aged", which ends in 54s`)
		sink.Retract("stop")
		sink.Raise("go")
		checkExplained(t, c, id, paused)
		sink.Raise("wait.again")
		checkExplained(t, c, id, paused+`; deferred for 10s at most because of signal "wait.again", which ends in 1m0s`)
		// After MaxDefer, the signal does not hold up the item, though it is still there.
		time.Sleep(10 * time.Second)
		checkExplained(t, c, id, paused)
		c.Resume()
		checkExplained(t, c, id, "operation # has succeeded")
	})
}

// A signal of the coordinator's own operation counts as long as the operation is in the window, even if the sink
// has forgotten it. A signal of another coordinator is shown with its name.
func TestExplainOwnAndOthersSignals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{MaxAge: time.Minute})
		c := bodies(t, core.Options{Name: "orders", Sink: sink, DeferOn: "wait", MaxDefer: -1, MaxAge: time.Hour, MaxConcurrency: 2})
		other := bodies(t, core.Options{Name: "deploys", Sink: sink})
		holding := newGate()
		own := enqueue(t, c, func(ctx context.Context) error {
			o := core.OperationFrom(ctx)
			o.Raise("wait")
			o.Hold("wait", 0)
			return holding.body(ctx)
		})
		synctest.Wait()
		id := enqueue(t, c, quick)
		checkExplained(t, c, id, `operation # is pending: deferred because of held signal "wait" by operation %d of "orders"; deferred because of signal "wait" by operation %[1]d of "orders"`, own)
		holding.open()
		checkExplained(t, c, id, `operation # is pending: deferred because of signal "wait" by operation %d of "orders"`, own)
		time.Sleep(30 * time.Minute)
		checkExplained(t, c, id, `operation # is pending: deferred because of signal "wait" by operation %d of "orders"`, own)
		g := newGate()
		others := enqueue(t, other, func(ctx context.Context) error {
			core.OperationFrom(ctx).Hold("wait", time.Hour)
			return g.body(ctx)
		})
		checkExplained(t, c, id, `operation # is pending: deferred because of held signal "wait" by operation %d of "deploys", which ends in 1h0m0s; deferred because of signal "wait" by operation %d of "orders"`, others, own)
		g.open()
		checkExplained(t, c, id, `operation # is pending: deferred because of signal "wait" by operation %d of "orders"`, own)
		c.Evict(own)
		checkExplained(t, c, id, "operation # has succeeded")
	})
}

// The rules of a lane, besides those for all.
func TestExplainLaneRules(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := core.Must(core.NewCoordinator(coretest.Run, core.Options{MaxConcurrency: 1, DeferOn: "night", MaxDefer: time.Hour, Lanes: []core.Lane{
			{Name: "hot"},
			{Name: "slow", DeferOn: "busy", CancelOn: "overload", MaxDefer: -1},
		}}))
		c.Pause()
		hot, slow := enqueue(t, c.Lane("hot"), quick), enqueue(t, c.Lane("slow"), quick)
		for _, name := range []string{"night", "busy", "overload"} {
			c.Sink().Raise(name)
		}
		checkExplained(t, c, hot, `operation # is pending: the coordinator is paused; deferred for 1h0m0s at most because of signal "night", which ends in 5m0s`)
		checkExplained(t, c, slow, `operation # is pending: the coordinator is paused; deferred for 1h0m0s at most because of signal "night", which ends in 5m0s; will be refused because of signal "overload", which ends in 5m0s; deferred because of signal "busy", which ends in 5m0s; 1 item of lanes above "slow" goes first`)
		c.Close()
	})
}

// An explanation names the newest of many signals.
func TestExplainManySignals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{DeferOn: "wait.*", MaxDefer: -1})
		for i := range 100 {
			c.Sink().Raise(fmt.Sprint("wait.", i))
		}
		id := enqueue(t, c, quick)
		synctest.Wait()
		x, _ := c.Explain(id)
		checkEqual(t, "the newest 16", words(len(x.Reasons), x.Reasons[0].Signal.Name, x.Reasons[len(x.Reasons)-1].Signal.Name), "16 wait.99 wait.84")
		c.Close()
	})
}

// An explanation follows the waits from key to key, from body to body and from coordinator to coordinator.
func TestExplainChain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		orders := keyedBodies(t, core.Options{Name: "orders", MaxConcurrency: 4})
		payments := bodies(t, core.Options{Name: "payments", MaxConcurrency: 1})
		mails := core.Must(core.NewCoordinator(coretest.Run, core.Options{Name: "mails", MaxConcurrency: 1, MaxQueued: 1, DeferOn: "mail.down", MaxDefer: -1,
			Lanes: []core.Lane{{Name: "bulk"}}}))
		release := mails.Sink().Hold("mail.down", "smtp", 0)

		id := func(c core.Inspector, status core.Status) (id core.OperationID) {
			synctest.Wait()
			for s := range c.Operations(core.OperationQuery{Status: status}) {
				id = s.ID
			}
			return id
		}
		enqueue(t, orders, keyedBody{"ada", do(payments, do(mails, quick))})
		first := id(orders, core.StatusRunning)
		paying := id(payments, core.StatusRunning)
		mailing := id(mails, core.StatusPending)
		second := enqueue(t, orders, keyedBody{"ada", quick})
		third := enqueue(t, payments, func(ctx context.Context) error { return nil })
		fourth := enqueue(t, orders, keyedBody{"bob", do(payments, quick)})
		time.Sleep(time.Second)

		mail := fmt.Sprintf(`operation %d: deferred because of held signal "mail.down" for "smtp"`, mailing)
		pay := fmt.Sprintf(`operation %d: its body waits for operation %d of "mails"; `, paying, mailing) + mail
		checkExplained(t, orders, second, `operation # is pending: the only slot of key "ada" is taken by operation %d, for 1s; operation %[1]d: its body waits for operation %d of "payments"; %s`, first, paying, pay)
		checkExplained(t, orders, first, `operation # is running: its body waits for operation %d of "payments"; %s`, paying, pay)
		checkExplained(t, payments, third, `operation # is pending: the only slot is taken by operation %d, for 1s; %s`, paying, pay)
		checkExplained(t, orders, fourth, `operation # is running: its body waits for operation %d of "payments"; operation %[1]d: the only slot is taken by operation %d, for 1s; 1 item before it goes first; %s`,
			id(payments, core.StatusPending), paying, pay)

		// A wait for all operations, for the last one, and for room.
		flushing := enqueue(t, orders, keyedBody{"eve", payments.Flush})
		checkExplained(t, orders, flushing, `operation # is running: its body waits for 3 operations of "payments"; %s`, pay)
		other := bodies(t, core.Options{Name: "other"})
		lastly := enqueue(t, orders, keyedBody{"dan", mails.Flush})
		checkExplained(t, orders, lastly, `operation # is running: its body waits for the last operation of "mails"`)
		room := enqueue(t, other, func(ctx context.Context) error {
			_, err := mails.Enqueue(ctx, quick)
			return err
		})
		checkExplained(t, other, room, `operation # is running: its body waits for room in lane "bulk" of "mails"`)

		release()
		for _, c := range []core.Inspector{orders, payments, mails, other} {
			checkError(t, "Drain", c.Drain(t.Context()), nil)
		}
		checkExplained(t, orders, second, "operation # has succeeded")

		small := bodies(t, core.Options{Name: "small", MaxConcurrency: 1, MaxQueued: 1})
		g := newGate()
		enqueue(t, small, g.body)
		synctest.Wait()
		enqueue(t, small, quick)
		last := bodies(t, core.Options{})
		room = enqueue(t, last, func(ctx context.Context) error {
			_, err := small.Enqueue(ctx, quick)
			return err
		})
		checkExplained(t, last, room, `operation # is running: its body waits for room in "small"`)
		g.open()
	})
}

// All waits of one body on goroutines of its own are named, until they end.
func TestExplainSeveralWaitsOfABody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := bodies(t, core.Options{Name: "a"}), bodies(t, core.Options{Name: "b", MaxConcurrency: 2})
		first, second := newGate(), newGate()
		one, other := enqueue(t, b, first.body), enqueue(t, b, second.body)
		id := enqueue(t, a, func(ctx context.Context) error {
			var all sync.WaitGroup
			for _, id := range []core.OperationID{one, other} {
				all.Go(func() { b.Wait(ctx, id) })
			}
			all.Wait()
			return nil
		})
		synctest.Wait()
		x, _ := a.Explain(id)
		named := make(map[core.OperationID]bool)
		for _, r := range x.Reasons {
			checkEqual(t, "reason", words(r.Kind, r.Of, r.Operation), words(core.ReasonNested, "b", id))
			named[r.Holder] = true
		}
		checkEqual(t, "waits", words(len(x.Reasons), named[one], named[other]), "2 true true")
		first.open()
		checkExplained(t, a, id, `operation # is running: its body waits for operation %d of "b"`, other)
		second.open()
	})
}

// An explanation of a long chain ends after 16 operations.
func TestExplainIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var way []*core.Coordinator[coretest.Body]
		for range 40 {
			way = append(way, bodies(t, core.Options{MaxConcurrency: 1}))
		}
		g := newGate()
		next := coretest.Body(g.body)
		for _, c := range way {
			next = do(c, next)
		}
		last := call(t, next)
		waiting := enqueue(t, way[len(way)-1], quick)
		synctest.Wait()
		x, _ := way[len(way)-1].Explain(waiting)
		checkEqual(t, "reasons", len(x.Reasons), 16)
		g.open()
		checkError(t, "Do", last(), nil)
	})
}

func TestExplainFinishedAndUnknown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 1, MaxQueued: 1, DropOldest: true, CancelOn: "stop"})
		check := func(id core.OperationID, want string) {
			t.Helper()
			checkExplained(t, c, id, "operation # "+want)
		}
		check(enqueue(t, c, quick), "has succeeded")
		check(enqueue(t, c, func(context.Context) error { return errOnPurpose }), "has failed")
		running := enqueue(t, c, untilCancelled)
		check(running, "is running")
		dropped := enqueue(t, c, quick)
		pending := enqueue(t, c, quick)
		check(dropped, "was dropped")
		c.Cancel(pending, nil)
		check(pending, "was cancelled")
		refused := enqueue(t, c, quick)
		c.Sink().Raise("stop")
		c.Cancel(running, nil)
		check(running, "was cancelled")
		check(refused, "was refused")
		for _, id := range []core.OperationID{0, 1 << 60} {
			if x, ok := c.Explain(id); ok || x.Operation != 0 || x.Reasons != nil {
				t.Errorf("unknown operation %d: got %v, %t", id, x, ok)
			}
		}
		c.Close()
		if x, ok := c.Explain(running); ok {
			t.Errorf("after Close: got %v", x)
		}
	})
}

// Each kind of reason as JSON, in which times are those of the bubble.
func TestExplanationJSON(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{MaxAge: time.Minute})
		c := core.Must(core.NewKeyedCoordinator(func(b keyedBody) string { return b.key },
			func(ctx context.Context, b keyedBody) error { return b.body(ctx) },
			core.Options{Name: "orders", Sink: sink, MaxConcurrency: 1, DeferOn: "wait", CancelOn: "stop",
				Lanes: core.Must(core.ParseLanes("hot, slow:1"))}))
		other := bodies(t, core.Options{Name: "other"})
		g := newGate()
		busy := enqueue(t, c, keyedBody{"ada", do(other, g.body)})
		time.Sleep(time.Second)
		var inner core.OperationID
		for s := range other.Operations(core.OperationQuery{}) {
			inner = s.ID
		}
		earlier := enqueue(t, c, keyedBody{"ada", quick})
		id := enqueue(t, c, keyedBody{"ada", quick})
		higher := enqueue(t, c.Lane("hot"), keyedBody{"bob", quick})
		c.Pause()
		sink.Raise("stop")
		sink.Raise("wait")
		x, _ := c.Explain(id)
		got, err := json.Marshal(x)
		checkError(t, "Marshal", err, nil)
		at := func(d time.Duration) string {
			text, _ := json.Marshal(begin.Add(d).Local())
			return string(text)
		}
		var stop, wait signals.Signal
		for s := range sink.Sense(signals.Query{Pattern: "stop, wait"}) {
			stop, wait = wait, s
		}
		signal := func(s signals.Signal) string {
			text, _ := json.Marshal(s)
			return string(text)
		}
		expand := strings.NewReplacer("ID", fmt.Sprint(id), "BUSY", fmt.Sprint(busy), "INNER", fmt.Sprint(inner), "EARLIER", fmt.Sprint(earlier), "HIGHER", fmt.Sprint(higher),
			"START", at(0), "NOW", at(time.Second), "FORCED", at(6*time.Second), "AGED", at(61*time.Second),
			"STOP", signal(stop), "WAIT", signal(wait))
		want := expand.Replace(`{"operation":ID,"status":"pending","time":NOW,"reasons":[` +
			`{"kind":"paused","operation":ID},` +
			`{"kind":"limit","operation":ID,"holder":BUSY,"running":1,"limit":1,"since":START},` +
			`{"kind":"lane","operation":ID,"holder":BUSY,"lane":"slow","running":1,"limit":1,"since":START},` +
			`{"kind":"key","operation":ID,"holder":BUSY,"key":"ada","running":1,"limit":1,"since":START},` +
			`{"kind":"refused","operation":ID,"signal":STOP,"since":NOW,"expires":AGED},` +
			`{"kind":"deferred","operation":ID,"signal":WAIT,"since":NOW,"expires":AGED,"forced":FORCED},` +
			`{"kind":"priority","operation":ID,"holder":HIGHER,"lane":"slow","ahead":1},` +
			`{"kind":"order","operation":ID,"holder":EARLIER,"key":"ada","ahead":1},` +
			`{"kind":"nested","operation":BUSY,"holder":INNER,"of":"other"}]}`)
		coretest.Check(t, string(got) == want, "got  %s\nwant %s", got, want)
		text, _ := json.Marshal(must(c.Explain(busy)).Reasons[0])
		checkEqual(t, "one reason", string(text), fmt.Sprintf(`{"kind":"nested","operation":%d,"holder":%d,"of":"other"}`, busy, inner))
		text, _ = json.Marshal(core.Explanation{})
		checkEqual(t, "none", string(text), `{"operation":0,"status":"Status(0)","time":"0001-01-01T00:00:00Z"}`)
		g.open()
		c.Close()
	})
}

func must[V any](v V, ok bool) V {
	if !ok {
		panic("not found")
	}
	return v
}

// Explanations that a user makes have a text, too.
func TestExplanationOfNothing(t *testing.T) {
	checkEqual(t, "zero Explanation", core.Explanation{}.String(), "operation 0 is Status(0)")
	checkEqual(t, "zero Reason", core.Reason{}.String(), "")
	for _, kind := range []core.ReasonKind{
		core.ReasonPaused, core.ReasonLimit, core.ReasonLane, core.ReasonKey, core.ReasonRefused,
		core.ReasonDeferred, core.ReasonPriority, core.ReasonOrder, core.ReasonNested, "another",
	} {
		r := core.Reason{Kind: kind}
		x := core.Explanation{Operation: 7, Status: core.StatusPending, Reasons: []core.Reason{r, {}}}
		coretest.Check(t, r.String() != "", "%s: got no text", kind)
		checkSays(t, string(kind), x, r.String())
		if x.Time = begin; strings.Contains(x.String(), "for 0s") {
			t.Errorf("%s: got %q, want no spans of what has no time", kind, x)
		}
		_, err := json.Marshal(x)
		checkError(t, string(kind), err, nil)
	}
}

// A body can say what it waits for.
func TestExplainWhatABodyWaitsFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := core.Must(core.NewCoordinator(coretest.Run, core.Options{Name: "orders", MaxConcurrency: 1}))
		go1, end := make(chan struct{}), make(chan struct{})
		id := enqueue(t, c, func(ctx context.Context) error {
			op := core.OperationFrom(ctx)
			until := time.Now().Add(time.Minute)
			answered := op.WaitsFor("an answer", time.Time{})
			granted := op.WaitsFor("a token of limiter api", until)
			<-go1
			answered()
			answered()
			<-go1
			granted()
			<-end
			return nil
		})
		next := enqueue(t, c, func(context.Context) error { return nil })
		time.Sleep(time.Second)
		const token = "its body waits for a token of limiter api, for 1s, for 59s more at most"
		checkExplained(t, c, id, "operation # is running: its body waits for an answer, for 1s; "+token)
		checkSays(t, "of an operation that waits for it", explain(t, c, next), token)
		go1 <- struct{}{}
		checkExplained(t, c, id, "operation # is running: "+token)
		x, _ := c.Explain(id)
		text, err := json.Marshal(x.Reasons[0])
		checkError(t, "MarshalJSON", err, nil)
		checkSays(t, "JSON", string(text), `"kind":"body"`, `"what":"a token of limiter api"`)
		go1 <- struct{}{}
		checkExplained(t, c, id, "operation # is running")
		close(end)
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		checkExplained(t, c, id, "operation # has succeeded")
	})
}
