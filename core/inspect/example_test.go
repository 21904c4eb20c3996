package inspect_test

import (
	"context"
	"fmt"
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

// nightly is a group of schedules with one entry. Methods that are not shown would come from the embedded interface.
type nightly struct {
	inspect.Schedules
	backup inspect.ScheduleStatus
}

func (n *nightly) Name() string                     { return "nightly" }
func (n *nightly) Status() []inspect.ScheduleStatus { return []inspect.ScheduleStatus{n.backup} }
func (n *nightly) Pause(pattern string) int         { n.backup.Paused = true; return 1 }

func (n *nightly) Firings(name string) []inspect.Firing {
	return []inspect.Firing{{Tick: n.backup.Last, State: "skipped", Err: "the last one was not finished"}}
}

// A status page shows all schedules of a program, from any package, and what became of the last firings, if the
// schedules know that.
func ExampleSchedules() {
	var plans inspect.Schedules = &nightly{backup: inspect.ScheduleStatus{Name: "backup", When: "0 3 * * *", Last: time.Date(2026, 5, 1, 3, 0, 0, 0, time.UTC)}}
	plans.Pause("backup")
	for _, s := range plans.Status() {
		fmt.Println(plans.Name(), s.Name, s.When, s.Paused)
	}
	if known, ok := plans.(inspect.Firings); ok {
		for _, f := range known.Firings("backup") {
			fmt.Println(f.Tick.Format(time.DateTime), f.State, f.Err)
		}
	}
	// Output:
	// nightly backup 0 3 * * * true
	// 2026-05-01 03:00:00 skipped the last one was not finished
}

// more is what a queue may also offer.
type more = inspect.Items

// letters is a queue in a store with dead items.
type letters struct {
	inspect.StoredQueue
	more
	dead []inspect.StoredItem
}

func (l *letters) Status(context.Context) (inspect.QueueStatus, error) {
	return inspect.QueueStatus{Counts: []inspect.StateCount{{State: "dead", Items: len(l.dead)}}}, nil
}

func (l *letters) Items(_ context.Context, match inspect.ItemQuery) (inspect.ItemPage, error) {
	return inspect.ItemPage{Items: l.dead}, nil // a store selects, at most match.Limit
}

func (l *letters) Item(_ context.Context, id int64) (inspect.ItemDetail, bool, error) {
	return inspect.ItemDetail{StoredItem: l.dead[0], Why: "it is dead", History: []inspect.ItemAttempt{{State: "dead", Node: "shop-1"}},
		Steps: []inspect.ItemStep{{Name: "write", State: "done"}, {Name: "send", State: "failed"}}}, true, nil
}

// A status page shows all queues of a program, from any package, and the history of an item, if the queue knows that.
func ExampleStoredQueue() {
	ctx := context.Background()
	var queue inspect.StoredQueue = &letters{dead: []inspect.StoredItem{{ID: 7, Key: "ada", Err: "no such address"}}}
	status, err := queue.Status(ctx)
	fmt.Println(status.Counts, err)
	page, err := queue.Items(ctx, inspect.ItemQuery{State: "dead", Limit: 50})
	for _, item := range page.Items {
		fmt.Println(item.ID, item.Key, item.Err, err)
	}
	if items, ok := queue.(inspect.Items); ok {
		item, found, err := items.Item(ctx, 7)
		fmt.Println(item.ID, item.Why, item.History[0].Node, found, err)
		for _, step := range item.Steps { // of work that consists of several
			fmt.Println(step.Name, step.State)
		}
	}
	// Output:
	// [{dead 1}] <nil>
	// 7 ada no such address <nil>
	// 7 it is dead shop-1 true <nil>
	// write done
	// send failed
}
