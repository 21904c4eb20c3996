package durable

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"
)

// MaxLook is how many items a page looks at. If fewer of them match than asked for, the page is short or
// empty, and its Next goes on.
const MaxLook = 10_000

// A Page has some of the items that a [Query] selects.
type Page struct {
	Items []Item `json:"items"`
	Next  string `json:"next,omitempty"` // Query.After for the next page; "": this is the last one
}

// List returns a page of the items that match selects, at most match.Limit or 100, as they were at one
// moment. Running items are first. Then come those that are Ready or Retry, by class, lane and RunAt; Blocked ones
// by class and lane; and Halted, Dead, Cancelled and Done ones, each by the time of their ends. Other stores may have
// another order. For a State, a Lane, a Class or a Key, a page costs the same wherever it is. For other fields, and
// if there are several, a page looks at up to [MaxLook] items.
func (q *Queue[T]) List(ctx context.Context, match Query) (Page, error) {
	return q.queue.list(ctx, match)
}

func (q *queue) list(ctx context.Context, match Query) (Page, error) {
	match, err := match.resolved()
	if err != nil {
		return Page{}, err
	}
	page, err := q.store.Items(ctx, q.opts.Name, match)
	for n := range page.Items {
		page.Items[n].open()
	}
	return page, q.fail("list items", err)
}

// Items walks the items that match selects, in the order of [Queue.List]. It ends after the first error. It
// reads pages: later pages may show changes that were made meanwhile.
func (q *Queue[T]) Items(ctx context.Context, match Query) iter.Seq2[Item, error] {
	return q.queue.items(ctx, match)
}

func (q *queue) items(ctx context.Context, match Query) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		page := match
		for left := cmp.Or(match.Limit, math.MaxInt); left != 0; {
			page.Limit = min(left, 100)
			got, err := q.list(ctx, page)
			if err != nil {
				yield(Item{}, err)
				return
			}
			for _, i := range got.Items {
				if !yield(i, nil) {
					return
				}
			}
			left -= len(got.Items)
			if page.After = got.Next; page.After == "" {
				return
			}
		}
	}
}

// Count counts the items that match selects. It looks at all items that match State, Lane, Class and Key.
func (q *Queue[T]) Count(ctx context.Context, match Query) (int, error) {
	return q.queue.count(ctx, match)
}

func (q *queue) count(ctx context.Context, match Query) (int, error) {
	match, err := match.resolved()
	if err != nil {
		return 0, err
	}
	n, err := q.store.Count(ctx, q.opts.Name, match)
	return n, q.fail("count items", err)
}

// resolved returns the query as a store gets it.
func (q Query) resolved() (Query, error) {
	q.State = q.states()
	if q.Dead {
		q.State &= Dead | Halted
	}
	if q.Due || q.Delayed {
		q.State &= Ready | Retry
	}
	_, err := q.from()
	switch {
	case q.Due && q.Delayed:
		err = errors.New("durable: no item is Due and Delayed: set one of them in a Query")
	case q.Limit < 0:
		err = fmt.Errorf("durable: Limit of a Query is %d, but must not be negative", q.Limit)
	case q.MinAge < 0 || q.MaxAge < 0:
		err = fmt.Errorf("durable: MinAge and MaxAge of a Query are %v and %v, but must not be negative", q.MinAge, q.MaxAge)
	}
	q.Dead = false
	return q, errors.Join(err, checkText("Query.Key", q.Key), checkText("Query.Lane", q.Lane), checkText("Query.Class", q.Class), checkText("Query.Err", q.Err))
}

func (q Query) states() State { return cmp.Or(q.State, ^State(0)) }

// matches reports whether an item matches all fields, at a time.
func (q Query) matches(i Item, now time.Time) bool {
	age, due := now.Sub(i.Enqueued), !i.RunAt.After(now)
	return i.State&q.states() != 0 && (q.Key == "" || i.Key == q.Key) && (q.Lane == "" || i.Lane == q.Lane) && (q.Class == "" || i.Class == q.Class) && strings.Contains(i.Err, q.Err) &&
		age >= q.MinAge && (q.MaxAge == 0 || age < q.MaxAge) && (!q.Due || due) && (!q.Delayed || !due)
}

// A Part is items of a queue that an index has in order: for engines. They have one of the States, and the
// Key unless it is "". If they are Ready, Retry or Blocked, and there is no Key, they have the Place, also
// ""; others have the Place unless it is "". Their order is that of At, which is the microsecond of RunAt (Ready and
// Retry), or of the end (Finished and Halted), the Rank (Blocked, with a Key), and else 0; and then of their IDs.
type Part struct {
	State State // all of those with a Key that are heads are one part
	Key   string
	Place string // of [Insert.Place]
	From  Looked // the part begins after it
	kind  int
}

// Looked is an item of a [Part], which may match a query.
type Looked struct {
	At    int64
	ID    ItemID
	Match bool
}

// Parts returns the parts that have all items that match, and perhaps others: for engines. Places returns the
// places but "" with items in one of the states, sorted; with "" if they are not Finished and Halted.
func (q Query) Parts(places func(State) ([]string, error)) (parts []Part, err error) {
	heads, states := Ready|Running|Retry|Halted, q.states()
	by := func(kind int, state, of State) {
		var all []string
		if err == nil {
			all, err = places(of)
		}
		for _, place := range all {
			if i := (Item{}); err == nil {
				if i.SetPlace(place); (q.Lane == "" || i.Lane == q.Lane) && (q.Class == "" || i.Class == q.Class) {
					parts = append(parts, Part{State: state, Place: place, kind: kind})
				}
			}
		}
	}
	for kind, state := range []State{Running, Ready | Retry, Blocked, Halted, Dead, Cancelled, Done} {
		switch {
		case q.Key != "" && kind == 0 && states&heads != 0:
			parts = append(parts, Part{State: heads, Key: q.Key, kind: kind})
		case states&state == 0 || q.Key != "" && state&heads != 0:
		case q.Key != "":
			parts = append(parts, Part{State: state, Key: q.Key, kind: kind})
		case state == Ready|Retry && states&state == Retry:
			by(kind, Retry, Retry)
		case state == Ready|Retry, state == Blocked:
			by(kind, state, state)
		case kind > 0 && (q.Lane != "" || q.Class != ""):
			by(kind, state, Finished|Halted)
		default:
			parts = append(parts, Part{State: state, kind: kind})
		}
	}
	return parts, err
}

// A cursor is a place in the order of [Queue.List].
type cursor struct {
	Kind  int    `json:"k"`
	Place string `json:"p,omitempty"`
	At    int64  `json:"t,omitempty"`
	ID    ItemID `json:"i"`
}

func (q Query) from() (c cursor, err error) {
	if q.After != "" && json.Unmarshal([]byte(q.After), &c) != nil {
		err = fmt.Errorf("durable: Query.After is %.40q, which is no Page.Next", q.After)
	}
	return c, err
}

// Walk finds the items of a page in the parts of the query: for engines. Look returns up to most items of a
// part, in its order, without those that Due and Delayed leave out.
func (q Query) Walk(places func(State) ([]string, error), look func(p Part, most int) ([]Looked, error)) (ids []ItemID, next string, err error) {
	limit, left := min(cmp.Or(q.Limit, 100), MaxLook), MaxLook
	chunk := limit + 1
	last, err := q.from()
	if err != nil {
		return nil, "", err
	}
	parts, err := q.Parts(places)
	for _, p := range parts {
		switch order := cmp.Or(cmp.Compare(p.kind, last.Kind), cmp.Compare(p.Place, last.Place)); {
		case order < 0:
			continue
		case order == 0:
			p.From = Looked{At: last.At, ID: last.ID}
		}
		for more := true; more && err == nil; {
			most := min(left, chunk)
			var found []Looked
			found, err = look(p, most)
			more, chunk = len(found) == most, min(2*chunk, max(2000, limit+1))
			for _, f := range found {
				if len(ids) == limit || left == 0 {
					return ids, last.String(), nil
				}
				if left--; f.Match {
					ids = append(ids, f.ID)
				}
				last, p.From = cursor{p.kind, p.Place, f.At, f.ID}, f
			}
			if left == 0 && err == nil {
				return ids, last.String(), nil
			}
		}
	}
	return ids, "", err
}

func (c cursor) String() string {
	text, _ := json.Marshal(c)
	return string(text)
}
