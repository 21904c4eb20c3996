package statuspage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/patterns/statuspage"
)

// Errors that differ in numbers and ids only are one group. A group leads to its newest operation, and has the stack of a
// panic. Texts and stacks are redacted.
func TestErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := func(_ context.Context, item string) error {
			time.Sleep(time.Second)
			switch item {
			case "":
				return nil
			case "panic":
				panic("index 12 of customer 4711")
			}
			return errors.New(item)
		}
		a := newCoordinator(t, work, core.Options{Name: "a", MaxConcurrency: 1, MaxFailed: 1100, MaxAge: time.Hour})
		b := newCoordinator(t, work, core.Options{Name: "b", MaxConcurrency: 1})
		p := newPage(t, statuspage.Options{Coordinators: []core.Inspector{a, b}, Redact: func(text string) string { return strings.ReplaceAll(text, "customer", "xxx") }})
		assert.Empty(t, get(t, p, "errors")["groups"])
		ids := enqueue(t, a, "order 1 not found", "", "order 22 not found", "order 3.5 not found", "panic")
		enqueue(t, b, "order 1 not found")
		time.Sleep(time.Minute)
		o := get(t, p, "errors")
		assert.Equal(t, []any{"order # not found", "core: operation panicked: index # of xxx #", "order # not found"}, o.each("groups", "text"))
		assert.Equal(t, []any{3.0, 1.0, 1.0}, o.each("groups", "count"))
		assert.Equal(t, []any{"a", "a", "b"}, o.each("groups", "coordinator"))
		assert.Equal(t, []any{"2000-01-01T00:00:01.000Z", "2000-01-01T00:00:04.000Z"}, []any{o.at("groups", 0, "first"), o.at("groups", 0, "last")})
		assert.Equal(t, []any{id(ids[3]), "order 3.5 not found"}, []any{o.at("groups", 0, "example", "id"), o.at("groups", 0, "example", "error")})
		assert.Nil(t, o.at("groups", 0, "stack"))
		assert.Contains(t, o.at("groups", 1, "stack"), "TestErrors.func1")
		assert.Equal(t, []any{0.0, false}, []any{o["others"], o["more"]})
		assert.Equal(t, []any{"b"}, get(t, p, "errors?coordinator=b").each("groups", "coordinator"))
		assert.EqualValues(t, 2, get(t, p, "errors?limit=1")["others"])

		for i := range 1050 {
			enqueue(t, a, "kind "+strings.Repeat("x", i%33)+"y"+strings.Repeat("z", i/33))
		}
		time.Sleep(30 * time.Minute)
		assert.EqualValues(t, 1050+4-50, get(t, p, "errors")["others"], "beyond 1,000 kinds, operations are counted only")
	})
}

// Numbers and ids are masked; names are not.
func TestErrorsMask(t *testing.T) {
	for text, want := range map[string]string{
		`dial tcp 10.0.0.7:5432: connect: refused`:                        "dial tcp #:#: connect: refused",
		`no user "ada-7" in "mails" of 'eu1'`:                             `no user # in "mails" of #`,
		"item 9f1c2b3a-0d4e-4f5a-8b6c-7d8e9f0a1b2c is gone":               "item # is gone",
		"blob deadbeef01 at 0xc000012ab8 took 1.5s":                       "blob # at # took #s",
		"order_17 of tok_9fK2mQ7xT4bL0pWz: internationalization declined": "order_# of tok_#: internationalization declined",
	} {
		t.Run(text, func(t *testing.T) {
			c := newCoordinator(t, func(context.Context, string) error { return fmt.Errorf("%s", text) }, core.Options{Name: "c"})
			c.Do(t.Context(), "")
			p := newPage(t, statuspage.Options{Coordinators: []core.Inspector{c}})
			assert.Equal(t, []any{want}, get(t, p, "errors").each("groups", "text"))
		})
	}
}
