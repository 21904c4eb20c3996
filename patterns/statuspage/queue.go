package statuspage

import (
	"context"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// storeEvery is how often a store is asked at most.
const storeEvery = 2 * time.Second

// queue asks its store in the background, one question at a time, so that a slow store
// holds up nothing else.
type queue struct {
	core.StoredQueue
	id string

	mu    sync.Mutex
	asked time.Time
	busy  chan struct{} // closed when there is an answer; nil: no question
	known bool
	last  core.QueueStatus
	err   error
}

func (q *queue) name() string { return q.id }

// refresh asks the store, unless that is under way or was so lately.
func (q *queue) refresh(ctx context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := time.Now(); q.busy == nil && (!q.known || now.Sub(q.asked) >= storeEvery) {
		q.asked, q.busy = now, make(chan struct{})
		go q.ask(ctx)
	}
}

func (q *queue) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	status, err := q.Status(ctx)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.known, q.err = true, err; err == nil {
		q.last = status
	}
	close(q.busy)
	q.busy = nil
}

// status is the last answer. It waits for the first one.
func (q *queue) status(ctx context.Context, wait time.Duration) (core.QueueStatus, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if busy := q.busy; !q.known && busy != nil && wait > 0 {
		q.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
		case <-time.After(wait):
		}
		q.mu.Lock()
	}
	return q.last, q.err
}

// deadSource shows items that are not tried any more.
type deadSource struct {
	page  *Page
	queue *queue
	query query
}

type deadFrame struct {
	Queue string    `json:"queue"`
	Items []deadRow `json:"items"`
	Next  int64     `json:"next"` // to pass as after; 0: these are the last
}

type deadRow struct {
	ID       int64  `json:"id"`
	Key      string `json:"key,omitempty"`
	Lane     string `json:"lane,omitempty"`
	State    string `json:"state"`
	Attempts int    `json:"attempts"`
	Ended    string `json:"ended,omitempty"`
	Error    string `json:"error,omitempty"`
}

func (v *deadSource) frame(ctx context.Context, _ effort) (any, error) {
	items, err := v.queue.DeadItems(ctx, int64(v.query.after), v.query.limit)
	if err != nil {
		return nil, err
	}
	shown := deadFrame{Queue: v.queue.id, Items: []deadRow{}}
	for _, i := range items {
		shown.Items = append(shown.Items, deadRow{
			i.ID, v.page.redacted(i.Key), i.Lane, i.State, i.Attempts, stamp(i.Ended), v.page.redacted(i.Err),
		})
	}
	if len(items) == v.query.limit {
		shown.Next = items[len(items)-1].ID
	}
	return shown, nil
}
