package statuspage

import (
	"context"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core/inspect"
)

// storeEvery is the least time between two questions to a store.
const storeEvery = 2 * time.Second

// A cache asks the store of a queue in the background, one question at a time, so that a
// slow store holds up nothing else.
type cache struct {
	inspect.StoredQueue
	page *Page

	mu    sync.Mutex
	asked time.Time
	busy  chan struct{} // closed when there is an answer; nil: no question is under way
	last  inspect.QueueStatus
	err   string // of the last question
}

// expire makes the next refresh ask the store.
func (c *cache) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = time.Time{}
}

// refresh asks the store, unless a question is under way or was asked in the last two seconds.
func (c *cache) refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy == nil && time.Since(c.asked) >= storeEvery {
		c.asked, c.busy = time.Now(), make(chan struct{})
		go c.ask()
	}
}

func (c *cache) ask() {
	ctx, cancel := context.WithTimeout(c.page.ctx, ioTimeout)
	defer cancel()
	var status inspect.QueueStatus
	text := ""
	if err := c.page.tried(func() (err error) { status, err = c.Status(ctx); return err }); err != nil {
		text = c.page.failure(err).text
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err = text; text == "" {
		c.last = status
	}
	close(c.busy)
	c.busy = nil
}

// answer returns the last answer. If a question is under way, it first waits for the
// answer.
func (c *cache) answer(ctx context.Context, wait time.Duration) (inspect.QueueStatus, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if busy := c.busy; busy != nil && wait > 0 {
		c.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
		case <-time.After(wait):
		}
		c.mu.Lock()
	}
	return c.last, c.err
}

// itemsOf shows a page of items of a queue.
func (p *Page) itemsOf(q query) (source, error) {
	c, err := choose(p.queues, "queue", q.of)
	return func(ctx context.Context, _ effort) (any, error) {
		got, err := c.is.Items(ctx, q.items)
		items := append([]inspect.StoredItem{}, got.Items...)
		for i := range items {
			p.clean(&items[i])
		}
		return object{"queue": c.id, "items": items, "next": got.Next}, err
	}, err
}
