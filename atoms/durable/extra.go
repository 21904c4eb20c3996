package durable

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// extra is what few items have. Engines keep it as the text [Insert].Extra.
type extra struct {
	MaxAttempts int               `json:"a,omitempty"`
	Timeout     time.Duration     `json:"t,omitempty"`
	Metadata    map[string]string `json:"m,omitempty"`
	Carried     map[string]string `json:"c,omitempty"` // see Carrier
}

// extra returns the text of the options of an item that is enqueued with ctx; "": it has none.
func (q *queue) extra(ctx context.Context, with ItemOptions) string {
	e := extra{with.MaxAttempts, with.Timeout, with.Metadata, nil}
	if q.opts.Carrier != nil {
		e.Carried, _ = guard.Value("Carrier.Inject", func() map[string]string { return q.opts.Carrier.Inject(ctx) })
		size := 0
		for name, value := range e.Carried {
			size += len(name) + len(value)
		}
		if size > maxMetadata {
			e.Carried = nil
		}
	}
	if e.MaxAttempts == 0 && e.Timeout == 0 && len(e.Metadata)+len(e.Carried) == 0 {
		return ""
	}
	text, _ := json.Marshal(e) // texts and numbers only
	return string(text)
}

// open sets what Extra says.
func (i *Item) open() (e extra) {
	if i.Extra != "" {
		_ = json.Unmarshal([]byte(i.Extra), &e) // a text of extra
		i.MaxAttempts, i.Timeout, i.Metadata = e.MaxAttempts, e.Timeout, e.Metadata
	}
	return e
}

// carry returns ctx for an attempt of the item.
func (q *queue) carry(ctx context.Context, i Item, carried map[string]string) context.Context {
	if q.opts.Carrier == nil {
		return ctx
	}
	about := map[string]string{"item": strconv.FormatInt(int64(i.ID), 10), "attempt": strconv.Itoa(i.Attempts)}
	for name, value := range i.Metadata {
		about["metadata."+name] = value
	}
	if with, err := guard.Value("Carrier.Extract", func() context.Context { return q.opts.Carrier.Extract(ctx, carried, about) }); err == nil && with != nil {
		return with
	}
	return ctx
}

// timed calls a body for at most limit; 0: for ever.
func timed(ctx context.Context, limit time.Duration, body func(ctx context.Context) error) error {
	if limit <= 0 {
		return body(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, core.ErrTimeout)
	defer cancel()
	err := body(ctx)
	if err == nil || context.Cause(ctx) != core.ErrTimeout || guard.Is(err, core.ErrTimeout) {
		return err
	}
	return fmt.Errorf("%w: %w", core.ErrTimeout, err)
}
