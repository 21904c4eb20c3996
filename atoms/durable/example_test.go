package durable_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

type Order struct{ Customer, ID string }

func (o Order) CustomerKey() string { return o.Customer }

func Example() {
	ctx, stop := context.WithCancel(context.Background()) // a server uses signal.NotifyContext
	ship := func(ctx context.Context, o Order) error {
		fmt.Println("ship", o.ID, "attempt", durable.ClaimFrom(ctx).Attempt) // ship 4711 attempt 1, then 4712
		if o.ID == "4712" {
			stop()
		}
		return nil
	}
	store := durable.Memory() // a program opens the store of an engine
	orders := core.Must(durable.New(store, Order.CustomerKey, ship, durable.Options{Name: "orders", MaxCluster: 40}))
	defer orders.Close()

	for _, id := range []string{"4711", "4712"} {
		if _, err := orders.Enqueue(ctx, Order{"ada", id}); err != nil { // nil: it is on disk
			panic(err)
		}
	}
	if err := orders.Run(ctx); err != nil {
		panic(err)
	}
	// Output:
	// ship 4711 attempt 1
	// ship 4712 attempt 1
}

// A process without Run is a producer. It can ask about items, and cancel them.
func ExampleQueue_Explain() {
	ctx := context.Background()
	work := func(context.Context, Order) error { return nil }
	lanes := core.Must(core.ParseLanes("hot:4, normal, slow:2")) // limits of all processes
	orders, err := durable.New(durable.Memory(), Order.CustomerKey, work, durable.Options{Lanes: lanes})
	if err != nil {
		panic(err)
	}
	defer orders.Close()

	first, _ := orders.Lane("hot").Enqueue(ctx, Order{"ada", "4711"})
	once := orders.With(durable.ItemOptions{Unique: "order 4712", Delay: time.Hour})
	second, _ := once.Enqueue(ctx, Order{"ada", "4712"})
	again, _ := once.Enqueue(ctx, Order{"ada", "4712"})
	fmt.Println(second == again)
	for _, id := range []durable.ItemID{first, second} {
		why, err := orders.Explain(ctx, id)
		fmt.Println(why, err)
	}
	fmt.Println(orders.Cancel(ctx, second, "customer left"))
	var stats durable.Stats
	stats, err = orders.Stats(ctx)
	fmt.Println(stats.Ready, stats.Cancelled, err)
	// Output:
	// true
	// no node serves the queue <nil>
	// behind 1 item of key ada; the first can be claimed <nil>
	// true <nil>
	// 1 1 <nil>
}

// A class bounds what all processes together ask of a service.
func ExampleQueue_Class() {
	ctx := context.Background()
	charge := func(context.Context, Order) error { return nil }
	stripe := durable.Class{Name: "stripe", Limit: 10, Rate: core.Rate{PerSecond: 100, Burst: 20}}
	orders, err := durable.New(durable.Memory(), Order.CustomerKey, charge, durable.Options{Classes: []durable.Class{stripe}})
	if err != nil {
		panic(err)
	}
	defer orders.Close()

	id, err := orders.Class("stripe").Enqueue(ctx, Order{"ada", "4711"})
	fmt.Println(id, err)
	stripe.Limit = 5
	fmt.Println(orders.SetClass(ctx, stripe)) // for all processes, until ResetClass
	stats, err := orders.Stats(ctx)
	var class durable.ClassStats = stats.Classes[0]
	fmt.Println(class.Name, class.Pending, class.Running, class.Limit, class.Calls.PerSecond, err)
	// Output:
	// 1 <nil>
	// <nil>
	// stripe 1 0 5 100 <nil>
}

// Dead items are kept, listed, and tried again when the reason is gone.
func ExampleQueue_Again() {
	ctx := context.Background()
	fixed := false
	work := func(_ context.Context, o Order) error {
		if !fixed {
			return durable.Permanent(errors.New("no such address"))
		}
		fmt.Println("ship", o.ID)
		return nil
	}
	orders, err := durable.New(durable.Memory(), Order.CustomerKey, work, durable.Options{})
	if err != nil {
		panic(err)
	}
	defer orders.Close()
	go orders.Run(ctx)

	orders.Enqueue(ctx, Order{"ada", "4711"})
	orders.Sink().WaitFor(ctx, durable.SignalFailed)
	fixed = true
	for dead, err := range orders.Items(ctx, durable.Query{Dead: true}) {
		if err != nil {
			panic(err)
		}
		fmt.Println(dead.ID, dead.Key, dead.Err)
		if _, err := orders.Again(ctx, dead.ID); err != nil {
			panic(err)
		}
	}
	orders.Sink().WaitFor(ctx, durable.SignalSucceeded)
	// Output:
	// 1 ada no such address
	// ship 4711
}

// A status page shows queues and steers them, whatever their items are.
func ExampleQueue_Inspect() {
	ctx, stop := context.WithCancel(context.Background())
	work := func(context.Context, Order) error {
		stop() // claim no more
		return durable.Permanent(errors.New("no such address"))
	}
	orders := core.Must(durable.New(durable.Memory(), Order.CustomerKey, work, durable.Options{Name: "orders"}))
	defer orders.Close()
	core.Must(orders.Enqueue(ctx, Order{"ada", "4711"}))
	if err := orders.Run(ctx); err != nil {
		panic(err)
	}

	page := func(q inspect.StoredQueue) {
		ctx := context.Background()
		for _, dead := range core.Must(q.Items(ctx, inspect.ItemQuery{State: "dead|halted", Limit: 50})).Items {
			fmt.Println(q.Name(), dead.ID, dead.Key, dead.Err, core.Must(q.Discard(ctx, dead.ID)))
		}
		for _, c := range core.Must(q.Status(ctx)).Counts {
			if c.Items > 0 {
				fmt.Println(c.Items, c.State)
			}
		}
	}
	page(orders.Inspect())
	// Output:
	// orders 1 ada no such address true
	// 1 cancelled
}

// Engines implement Store. These are the calls that a Queue makes.
func ExampleStore() {
	ctx, store := context.Background(), durable.Memory()
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	var inserted []durable.Inserted
	inserted, err := store.Insert(ctx, "orders", []durable.Insert{{Key: "ada", Data: []byte("1")}, {Key: "ada", Data: []byte("2")}})
	must(err)

	node := durable.Node{Queue: "orders", Name: "shop-1", Lease: 15 * time.Second, Lanes: []core.Lane{{}}}
	var id durable.NodeID
	id, err = store.Join(ctx, node)
	must(err)
	node.ID = id
	var turned durable.Turned
	turned, err = store.Turn(ctx, node, nil, durable.Want{Max: 10})
	must(err)
	items := turned.Items
	for _, wait := range turned.Waits {
		fmt.Println("never", wait == durable.ClassWait{})
	}
	var state durable.State = items[0].State
	fmt.Println(len(items), state, items[0].Attempts)

	var beaten durable.Beaten
	beating := durable.Beating{Node: node, Note: "why it does not claim"}
	beaten, err = store.Beat(ctx, beating.Node, "")
	must(err)
	for _, held := range beaten.Claims {
		fmt.Println("held", held == durable.Held{ID: items[0].ID, Key: "ada", Token: items[0].Token})
	}
	for _, lost := range beaten.Lost {
		fmt.Println("never", lost == durable.Lost{})
	}

	var kind durable.EndKind = durable.EndDone
	turned, err = store.Turn(ctx, node, []durable.End{{ID: items[0].ID, Key: items[0].Key, Token: items[0].Token, Kind: kind, HandOver: true}}, durable.Want{})
	must(err)
	var ended durable.Ended = turned.Ends[0]
	var outcome durable.Outcome = ended.Outcome
	fmt.Println(outcome == durable.OutcomeEnded, ended.State, string(ended.Next.Data))

	var result durable.Result
	result, _, err = store.Result(ctx, "orders", inserted[0].ID)
	must(err)
	var depths []durable.Depth
	depths, err = store.Depths(ctx, "orders")
	must(err)
	fmt.Println(result.State, len(result.Data), depths[0].State, depths[0].Items)
	x, _, err := store.Explain(ctx, "orders", inserted[1].ID)
	must(err)
	var serving []durable.Serving = x.Nodes
	fmt.Println(serving[0].Node.Name, serving[0].Running, x.Item.State)
	fmt.Println(store.Prune(ctx, "orders", durable.Keep{Done: 0}, 10))
	_, wakes := store.(durable.Waker)
	fmt.Println("wakes other processes:", wakes)
	// Output:
	// 1 running 1
	// held true
	// true done 2
	// done 0 running 1
	// shop-1 1 running
	// 1 false <nil>
	// wakes other processes: false
}

// Dead items are listed in pages, with the attempts of each, and changed all at once.
func ExampleQueue_List() {
	ctx := context.Background()
	work := func(context.Context, Order) error { return durable.Permanent(errors.New("no such address")) }
	orders := core.Must(durable.New(durable.Memory(), Order.CustomerKey, work, durable.Options{MaxConcurrency: 1, Poll: time.Millisecond}))
	defer orders.Close()
	ids := core.Must(orders.EnqueueAll(ctx, []Order{{"ada", "4711"}, {"bob", "4712"}, {"bob", "4713"}}))
	go orders.Run(ctx)
	for _, id := range ids {
		durable.Wait[string](ctx, orders, id) // until it has ended
	}

	match := durable.Query{Dead: true, Err: "address", Limit: 2}
	for {
		page, err := orders.List(ctx, match)
		if err != nil {
			panic(err)
		}
		for _, i := range page.Items {
			x := core.Must(orders.Explain(ctx, i.ID))
			fmt.Println(i.ID, i.Key, x.Attempts[0].Kind, x.Attempts[0].Err)
		}
		if match.After = page.Next; page.Next == "" {
			break
		}
	}
	p, err := orders.DiscardAll(ctx, durable.Query{Key: "bob"}, func(p durable.Progress) { fmt.Println(p.Changed, "of", p.Matched) })
	fmt.Println(p.Changed, err)
	// Output:
	// 1 ada dead no such address
	// 2 bob dead no such address
	// 3 bob dead no such address
	// 0 of 2
	// 2 of 2
	// 2 <nil>
}

// A body returns a value, and any process waits for it.
func ExampleWait() {
	ctx := context.Background()
	orders := core.Must(durable.New(durable.Memory(), Order.CustomerKey, func(ctx context.Context, o Order) error {
		if o.ID == "" {
			return durable.Permanent(errors.New("no id"))
		}
		return durable.Return(ctx, "parcel of "+o.ID)
	}, durable.Options{Poll: time.Millisecond}))
	defer orders.Close()
	go orders.Run(ctx)

	for _, o := range []Order{{"ada", "4711"}, {"ada", ""}} {
		id := core.Must(orders.Enqueue(ctx, o))
		parcel, err := durable.Wait[string](ctx, orders, id)
		if ended, ok := errors.AsType[*durable.EndedError](err); ok {
			fmt.Println(ended.State, ended.Err)
			continue
		}
		fmt.Println(parcel, err)
	}
	m := orders.Inspect().Stats()
	var lanes []durable.LaneStats = m.Lanes
	fmt.Println(m.Claimed, len(lanes))
	// Output:
	// parcel of 4711 <nil>
	// dead no id
	// 2 0
}

// An engine lists items by walking parts of the table that its indexes have in order.
func ExampleQuery_Walk() {
	match := durable.Query{State: durable.Dead | durable.Done, Limit: 2}
	table := map[durable.State][]durable.Looked{durable.Dead: {{At: 10, ID: 7, Match: true}}, durable.Done: {{At: 5, ID: 3, Match: true}, {At: 6, ID: 4, Match: true}}}
	places := func(durable.State) ([]string, error) { return nil, nil } // of Ready, Retry and Blocked items, if asked for
	for {
		ids, next, err := match.Walk(places, func(p durable.Part, most int) (found []durable.Looked, _ error) {
			for _, l := range table[p.State] {
				if l.At > p.From.At && len(found) < most { // a statement compares (At, ID)
					found = append(found, l)
				}
			}
			return found, nil
		})
		fmt.Println(ids, err)
		if match.After = next; next == "" {
			break
		}
	}
	sql := durable.Dialect{Table: "items", Arg: func(n int) string { return fmt.Sprint("$", n) }}
	fmt.Println(sql.Count(durable.Query{}, durable.Part{State: durable.Dead, Key: "ada"})) // and Look, in look
	// Output:
	// [7 3] <nil>
	// [4] <nil>
	// select count(*) from items as i where i.queue = $1 and i.state = 64 and i.state >= 16 and i.key <> '' and i.key = $2 and i.state >= 32 and true [ada]
}

// A permanent error makes an item dead at once: it is kept, and not tried again.
func ExamplePermanent() {
	ctx := context.Background()
	work := func(context.Context, Order) error { return durable.Permanent(errors.New("no such address")) }
	orders := core.Must(durable.New(durable.Memory(), Order.CustomerKey, work, durable.Options{}))
	defer orders.Close()
	go orders.Run(ctx)

	core.Must(orders.Enqueue(ctx, Order{"ada", "4711"}))
	orders.Sink().WaitFor(ctx, durable.SignalFailed)
	fmt.Println(orders.Count(ctx, durable.Query{Dead: true}))
	// Output: 1 <nil>
}

// A queue accepts a unique id once in 24 hours, or UniqueFor.
func ExampleItemOptions() {
	ctx := context.Background()
	work := func(context.Context, Order) error { return nil }
	orders := core.Must(durable.New(durable.Memory(), Order.CustomerKey, work, durable.Options{}))
	defer orders.Close()

	once := orders.With(durable.ItemOptions{Unique: "order 4711", Delay: time.Hour})
	for range 2 {
		id, added, err := once.EnqueueUnique(ctx, Order{"ada", "4711"})
		fmt.Println(id, added, err)
	}
	// Output:
	// 1 true <nil>
	// 1 false <nil>
}

// A region is a value of contexts, which goes with an item to whatever process runs it.
type region struct{}

type regions struct{}

func (regions) Inject(ctx context.Context) map[string]string {
	name, _ := ctx.Value(region{}).(string)
	return map[string]string{"region": name}
}

func (regions) Extract(ctx context.Context, carried, _ map[string]string) context.Context {
	return context.WithValue(ctx, region{}, carried["region"])
}

func ExampleCarrier() {
	var carrier durable.Carrier = regions{} // a Telemetry carries traces
	ctx, stop := context.WithCancel(context.Background())
	orders := core.Must(durable.New(durable.Memory(), Order.CustomerKey, func(ctx context.Context, _ Order) error {
		fmt.Println(ctx.Value(region{}))
		stop()
		return nil
	}, durable.Options{Carrier: carrier}))
	defer orders.Close()
	core.Must(orders.Enqueue(context.WithValue(ctx, region{}, "north"), Order{"ada", "4711"}))
	fmt.Println(orders.Run(ctx))
	// Output:
	// north
	// <nil>
}

// A paused queue accepts items, and no process runs any.
func ExampleQueue_Pause() {
	ctx := context.Background()
	work := func(context.Context, Order) error { return nil }
	orders := core.Must(durable.New(durable.Memory(), Order.CustomerKey, work, durable.Options{}))
	defer orders.Close()
	go orders.Run(ctx)

	fmt.Println(orders.Pause(ctx, durable.Pause{For: time.Hour, Reason: "the disk is full"}))
	id := core.Must(orders.Enqueue(ctx, Order{"ada", "4711"}))
	fmt.Println(orders.Cancel(ctx, id, "customer left"))
	fmt.Println(orders.Resume(ctx, durable.Pause{}))
	// Output:
	// <nil>
	// true <nil>
	// <nil>
}

// What a store does for a flow: it keeps steps under the token of a claim, lets an item wait, and gives it a signal.
func ExampleJournal() {
	ctx := context.Background()
	store := durable.Memory()
	node := durable.Node{Queue: "orders", Lease: time.Minute, Lanes: []core.Lane{{}}}
	var err error
	if node.ID, err = store.Join(ctx, node); err != nil {
		panic(err)
	}
	if _, err = store.Insert(ctx, "orders", []durable.Insert{{Key: "o-1"}}); err != nil {
		panic(err)
	}
	turned, err := store.Turn(ctx, node, nil, durable.Want{Max: 1})
	if err != nil {
		panic(err)
	}
	item := turned.Items[0]
	reserved := durable.Step{Name: "reserve", Seq: 1, State: durable.StepDone, Data: []byte(`"shelf 7"`)}
	current, err := store.Record(ctx, "orders", []durable.Record{{ID: item.ID, Token: item.Token, Steps: []durable.Step{reserved}}})
	fmt.Println(current, err)
	park := durable.Park{Step: "approval", Seq: 2, Pattern: "approval.*", For: time.Hour}
	if _, err = store.Turn(ctx, node, []durable.End{{ID: item.ID, Key: item.Key, Token: item.Token, Kind: durable.EndParked, Park: park}}, durable.Want{}); err != nil {
		panic(err)
	}
	show := func() {
		j, _, err := store.Journal(ctx, "orders", item.ID, true)
		if err != nil {
			panic(err)
		}
		var waits *durable.Parked = j.Wait
		fmt.Println("waits:", waits != nil)
		for _, s := range j.Steps {
			var state durable.StepState = s.State
			fmt.Printf("%s %v %q %q\n", s.Name, state, s.Signal, s.Data)
		}
	}
	show()
	sent, err := store.Signal(ctx, "orders", []durable.Signal{{Key: "o-1", Name: "approval.given", Data: []byte(`"ada"`)}})
	fmt.Println(sent[0] == durable.Signalled{Seq: sent[0].Seq, Woken: true}, err)
	show()
	// Output:
	// [true] <nil>
	// waits: true
	// reserve done "" "\"shelf 7\""
	// approval begun "" ""
	// true <nil>
	// waits: false
	// reserve done "" "\"shelf 7\""
	// approval done "approval.given" "\"ada\""
}

// What package flow and the engines call. A body calls package flow.
func ExampleFlow() {
	ctx, stop := context.WithCancel(context.Background())
	work := func(ctx context.Context, order string) error {
		var f *durable.Flow = durable.FlowFrom(ctx)
		shelf, err := f.Do(ctx, durable.Call{Name: "reserve", Do: func(context.Context) ([]byte, error) { return []byte(`"shelf 7"`), nil }})
		fmt.Println(order, string(shelf), err)
		stop()
		return err
	}
	orders, err := durable.New[string, string](durable.Memory(), nil, work, durable.Options{})
	if err != nil {
		panic(err)
	}
	defer orders.Close()
	defer orders.Sink().Subscribe(durable.SignalStray, func(s signals.Signal) {
		var stray durable.Stray
		stray, _ = durable.FlowStray.From(s)
		fmt.Println("nobody asked for", stray.Steps)
	})()
	if _, err := orders.Enqueue(ctx, "o-1"); err != nil {
		panic(err)
	}
	if err := orders.Run(ctx); err != nil {
		panic(err)
	}
	// Output: o-1 "shelf 7" <nil>
}

// While a service is down, this process claims nothing of its class.
func ExampleGate() {
	ctx, store := context.Background(), durable.Memory()
	node := durable.Node{Queue: "orders", Lease: time.Minute, Lanes: []core.Lane{{}}, Classes: []durable.Class{{Name: "stripe"}}}
	node.ID = core.Must(store.Join(ctx, node))
	core.Must(store.Insert(ctx, "orders", []durable.Insert{{Class: "stripe", Data: []byte("charge")}, {Data: []byte("mail")}}))
	turn := core.Must(store.Turn(ctx, node, nil, durable.Want{Max: 2, Gates: []durable.Gate{{Class: "stripe"}}}))
	fmt.Println(len(turn.Items), string(turn.Items[0].Data))
	// Output: 1 mail
}

// A store that is written in Go counts with a Shadow; its times are microseconds.
func ExampleShadow() {
	var none *durable.Shadow
	shadow := none.Use(&core.Limits{Rate: core.Rate{PerSecond: 1, Burst: 1}}, 0)
	fmt.Println(shadow.Claim(0, 0), shadow.Claim(0, 0))
	fmt.Println(shadow.Stats().Waited, "of", shadow.Stats().Started)
	// Output:
	// 0s 1s
	// 1 of 2
}
