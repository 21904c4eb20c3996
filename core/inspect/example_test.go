package inspect_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
)

// A page of another program wraps the part of a coordinator that its buttons need.
func ExampleActions() {
	jobs, err := core.NewCoordinator(func(context.Context, string) error { return nil }, core.Options{Name: "jobs"})
	if err != nil {
		panic(err)
	}
	defer jobs.Close()

	page := struct{ inspect.Actions }{jobs}
	page.Pause()
	id, err := jobs.Enqueue(context.Background(), "report")
	if err != nil {
		panic(err)
	}
	fmt.Println(page.Cancel(id, nil), page.Evict(id))
	page.Resume()
	fmt.Println(page.SetMaxConcurrency(3), jobs.Stats().Limit, jobs.Stats().Tracked)
	// Output:
	// true true
	// <nil> 3 0
}

// Two items have the same key, so the second one waits for the first. In the graph, the key is
// between them.
func ExampleWaits() {
	begun, end := make(chan bool, 2), make(chan bool)
	ship := func(ctx context.Context, order string) error {
		begun <- true
		<-end
		return nil
	}
	customer := func(order string) string { return "ada" }
	orders, err := core.NewKeyedCoordinator(customer, ship, core.Options{Name: "orders", MaxConcurrency: 2})
	if err != nil {
		panic(err)
	}
	defer orders.Close()
	defer close(end)
	for _, order := range []string{"A-17", "A-18"} {
		if _, err := orders.Enqueue(context.Background(), order); err != nil {
			panic(err)
		}
	}
	<-begun

	graph := inspect.Waits(orders)
	name := func(n inspect.WaitNode) string {
		if n.Kind == "" {
			return "a " + n.Status.String() + " operation"
		}
		return string(n.Kind) + " " + n.Name
	}
	show := func(e inspect.WaitEdge) {
		fmt.Println(name(graph.Nodes[e.From]), "waits for", name(graph.Nodes[e.To]))
	}
	for _, edge := range graph.Edges {
		show(edge)
	}
	fmt.Println(len(graph.Cycles), "cycles")
	// Output:
	// key ada waits for a running operation
	// a pending operation waits for key ada
	// 0 cycles
}

// A program that does not end in time can say what keeps it.
func ExampleBusy() {
	jobs := core.Must(core.NewCoordinator(func(context.Context, string) error { return nil }, core.Options{Name: "jobs"}))
	defer jobs.Close()
	jobs.Pause()
	core.Must(jobs.Enqueue(context.Background(), "report"))
	for _, text := range inspect.Busy(jobs, 10) {
		_, why, _ := strings.Cut(text, " is ")
		fmt.Println(why)
	}
	// Output: pending: the coordinator is paused
}

// nightly is a group of schedules with one entry.
type nightly struct{ inspect.ScheduleStatus }

func (n *nightly) Name() string { return "nightly" }
func (n *nightly) Status() []inspect.ScheduleStatus {
	return []inspect.ScheduleStatus{n.ScheduleStatus}
}
func (n *nightly) Pause(pattern string) int                      { n.Paused = true; return 1 }
func (n *nightly) Resume(pattern string) int                     { n.Paused = false; return 1 }
func (n *nightly) RunNow(ctx context.Context, name string) error { return nil }

func (n *nightly) Firings(name string) []inspect.Firing {
	return []inspect.Firing{{Tick: n.Last, State: "skipped", Err: "the last one was not finished"}}
}

// A status page shows what became of the last firings, if the schedules know that.
func ExampleFirings() {
	var plans inspect.Schedules = &nightly{inspect.ScheduleStatus{Name: "backup", Last: time.Date(2026, 5, 1, 3, 0, 0, 0, time.UTC)}}
	if known, ok := plans.(inspect.Firings); ok {
		for _, f := range known.Firings("backup") {
			fmt.Println(f.Tick.Format(time.DateTime), f.State, f.Err)
		}
	}
	// Output: 2026-05-01 03:00:00 skipped the last one was not finished
}

// A status page shows all schedules of a program, from any package.
func ExampleSchedules() {
	var plans inspect.Schedules = &nightly{inspect.ScheduleStatus{Name: "backup", When: "0 3 * * *"}}
	plans.Pause("backup")
	for _, s := range plans.Status() {
		fmt.Println(plans.Name(), s.Name, s.When, s.Paused)
	}
	// Output: nightly backup 0 3 * * * true
}

// letters is a queue in a store with one dead item.
type letters struct{ dead []inspect.StoredItem }

func (l *letters) Name() string                 { return "letters" }
func (l *letters) Pause(context.Context) error  { return nil }
func (l *letters) Resume(context.Context) error { return nil }

func (l *letters) Status(context.Context) (inspect.QueueStatus, error) {
	return inspect.QueueStatus{Counts: []inspect.StateCount{{State: "dead", Items: len(l.dead)}}}, nil
}

func (l *letters) Items(_ context.Context, match inspect.ItemQuery) (inspect.ItemPage, error) {
	return inspect.ItemPage{Items: l.dead}, nil // a store selects, at most match.Limit
}

func (l *letters) Again(ctx context.Context, id int64) (bool, error) { return l.Discard(ctx, id) }

func (l *letters) Discard(ctx context.Context, id int64) (bool, error) {
	before := len(l.dead)
	l.dead = slices.DeleteFunc(l.dead, func(d inspect.StoredItem) bool { return d.ID == id })
	return len(l.dead) < before, nil
}

func (l *letters) Item(_ context.Context, id int64) (inspect.ItemDetail, bool, error) {
	i := slices.IndexFunc(l.dead, func(d inspect.StoredItem) bool { return d.ID == id })
	if i < 0 {
		return inspect.ItemDetail{}, false, nil
	}
	return inspect.ItemDetail{StoredItem: l.dead[i], Why: "it is dead", History: []inspect.ItemAttempt{{State: "dead", Node: "shop-1", Err: l.dead[i].Err}}}, true, nil
}

func (l *letters) Count(_ context.Context, match inspect.ItemQuery) (int, error) {
	return len(l.dead), nil
}

func (l *letters) AgainAll(ctx context.Context, match inspect.ItemQuery) (int, error) {
	return l.DiscardAll(ctx, match)
}

func (l *letters) DiscardAll(ctx context.Context, match inspect.ItemQuery) (int, error) {
	n := len(l.dead)
	l.dead = nil
	return n, nil
}

func (l *letters) CancelAll(ctx context.Context, match inspect.ItemQuery, reason string) (int, error) {
	return l.DiscardAll(ctx, match)
}

// A status page shows the history of an item, and changes all items that match a query: it shows their number first.
func ExampleItems() {
	var queue inspect.StoredQueue = &letters{[]inspect.StoredItem{{ID: 7, Err: "no such address"}, {ID: 8, Err: "no such address"}}}
	items, ok := queue.(inspect.Items)
	if !ok {
		return
	}
	item, found, err := items.Item(context.Background(), 7)
	fmt.Println(item.ID, item.Why, item.History[0].Node, item.History[0].Err, found, err)
	match := inspect.ItemQuery{State: "dead", Err: "address"}
	fmt.Println(items.Count(context.Background(), match))
	fmt.Println(items.DiscardAll(context.Background(), match))
	// Output:
	// 7 it is dead shop-1 no such address true <nil>
	// 2 <nil>
	// 2 <nil>
}

// A status page shows all queues of a program, from any package.
func ExampleStoredQueue() {
	var queue inspect.StoredQueue = &letters{[]inspect.StoredItem{{ID: 7, Key: "ada", Err: "no such address"}}}
	page, err := queue.Items(context.Background(), inspect.ItemQuery{State: "dead", Limit: 50})
	for _, item := range page.Items {
		fmt.Println(item.ID, item.Key, item.Err, err)
	}
	fmt.Println(queue.Discard(context.Background(), 7))
	status, err := queue.Status(context.Background())
	fmt.Println(status.Counts, err)
	// Output:
	// 7 ada no such address <nil>
	// true <nil>
	// [{dead 0}] <nil>
}
