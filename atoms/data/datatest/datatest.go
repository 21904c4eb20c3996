// Package datatest checks that an engine keeps the promises of package data. [Run] checks all
// that [data.Engine] and [data.Store] promise:
//
//	func TestEngine(t *testing.T) {
//		datatest.Run(t, func(t testing.TB) data.Engine { return open(t.TempDir()) }, datatest.Options{})
//	}
//
// It is imported by tests only. [Memory] is an engine for tests.
package datatest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/data"
)

// Options say what an engine cannot do.
type Options struct {
	// JSON says that the engine accepts only JSON, and that Load may return another text of
	// the same JSON. If the engine cannot store a value, it must refuse it.
	JSON bool
	// Partial says that Save of several items may save only some of them.
	Partial bool
	// Reopen opens an engine again in the same place. If it is nil, Run does not check which
	// values are there after Close.
	Reopen func(t testing.TB, closed data.Engine) data.Engine
}

// Run runs the suite. For each test, it calls open, which must return an empty engine. Run closes
// the engine.
func Run(t *testing.T, open func(t testing.TB) data.Engine, opts Options) {
	for name, run := range map[string]func(s *suite){
		"keys of any bytes": (*suite).keys, "values": (*suite).values, "swap": (*suite).swap, "update loses nothing": (*suite).update,
		"all or nothing": (*suite).atomic, "list while writing": (*suite).list, "ended contexts": (*suite).contexts,
		"hostile input": (*suite).hostile, "random calls": (*suite).random,
	} {
		t.Run(name, func(t *testing.T) {
			s := &suite{T: t, opts: opts, ctx: context.Background(), e: open(t)}
			run(s)
			s.ok(s.e.Close())
		})
	}
}

type suite struct {
	*testing.T
	opts Options
	ctx  context.Context
	e    data.Engine
}

func (s *suite) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("got error %v", err)
	}
}

func (s *suite) equal(what string, got, want any) {
	s.Helper()
	if !reflect.DeepEqual(got, want) {
		s.Fatalf("%s: got %.200q, want %.200q", what, got, want)
	}
}

// reopen closes the engine and opens it again, if the options say how.
func (s *suite) reopen() {
	if s.opts.Reopen != nil {
		s.ok(s.e.Close())
		s.e = s.opts.Reopen(s.T, s.e)
	}
}

// value returns a text as JSON.
func value(text string) []byte {
	encoded, _ := json.Marshal(strings.ReplaceAll(text, "\x00", "NUL")) // JSONB of PostgreSQL refuses it
	return encoded
}

func items(value []byte, keys ...string) (all []data.Item) {
	for _, key := range keys {
		all = append(all, data.Item{Key: key, Value: value})
	}
	return all
}

func (s *suite) save(value []byte, keys ...string) {
	s.Helper()
	s.ok(s.e.Save(s.ctx, items(value, keys...)))
}

// load returns the value of a key; nil is none.
func (s *suite) load(key string) []byte {
	s.Helper()
	got, ok, err1 := s.e.Load(s.ctx, key)
	there, err2 := s.e.Has(s.ctx, key)
	s.ok(errors.Join(err1, err2))
	s.equal("Has and Load of "+key, there, ok)
	if ok && got == nil {
		return []byte{}
	}
	return got
}

// has checks the value of a key; nil is none.
func (s *suite) has(key string, want []byte) {
	s.Helper()
	if got := s.load(key); (got == nil) != (want == nil) || !s.same(got, want) {
		s.Fatalf("%.40q: got %.40q, want %.40q", key, got, want)
	}
}

// same reports whether values are equal; with the option JSON, whether they are the same
// JSON.
func (s *suite) same(a, b []byte) bool {
	if bytes.Equal(a, b) || !s.opts.JSON {
		return bytes.Equal(a, b)
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// lists checks what List and Len return.
func (s *suite) lists(prefix string, want map[string][]byte) {
	s.Helper()
	sorted := slices.Sorted(maps.Keys(want))
	sorted = slices.DeleteFunc(sorted, func(key string) bool { return !strings.HasPrefix(key, prefix) })
	for _, values := range []bool{true, false} {
		if values && len(prefix) > 1 {
			continue // those of few prefixes are enough
		}
		keys := sorted[:0:0]
		for item, err := range s.e.List(s.ctx, prefix, values) {
			s.ok(err)
			if keys = append(keys, item.Key); values && !s.same(item.Value, want[item.Key]) {
				s.Fatalf("%q: List got value %.40q, want %.40q", item.Key, item.Value, want[item.Key])
			}
		}
		s.equal("keys with prefix "+prefix, keys, sorted)
	}
	n, err := s.e.Len(s.ctx)
	s.ok(err)
	s.equal("Len", n, len(want))
}

var hostileKeys = []string{
	"a", "A", "aa", "a/b", "a_b", "a%2fb", "a%2Fb", "a\\b", "../../x", "..", ".", "/", "/etc/passwd", "~", "a.", "a ", " a", " ", "-", "--", "con", "CON", "nul", "Com1.txt",
	"\x00", "a\x00", "a\x00b", "\n", "\xff", "\xff\xff", "\xc3\x28", "é", "e\u0301", "'; drop table data; --", `"`, "%", "%%", "_", "*", "?", "[a]", ":", "a%1", "a_1", "a*1", "a?1", `a\1`, "a[1", "a'1", "a\xff1", "a\xff\xff1", "C:x", "a:b", "😀",
	strings.Repeat("a", 255), strings.Repeat("a", 256), strings.Repeat("A", data.MaxKey), strings.Repeat("a", data.MaxKey), strings.Repeat("a", data.MaxKey-1) + "b",
	strings.Repeat("\x00", data.MaxKey), strings.Repeat("\xff", data.MaxKey), strings.Repeat("/", data.MaxKey), "lock", ".lock", "x.tmp", "x.json",
}

var prefixes = []string{"", "a", "a%", "a_", "a*", "a?", `a\`, "a[", "a\xff", "a\xff\xff", "\xff", "\xff\xff", "a\x00", "b", "A", "é", "\xc3", "a'", "none", strings.Repeat("a", data.MaxKey)}

// keys checks that keys are kept in order, whatever their bytes are, and even after the
// engine was closed.
func (s *suite) keys() {
	all, want := slices.Clone(hostileKeys), map[string][]byte{}
	for b := range 256 {
		all = append(all, "byte"+string([]byte{byte(b)}))
	}
	for _, key := range all {
		s.has(key, want[key])
		want[key] = value("value of " + key)
		s.save(want[key], key)
	}
	s.reopen()
	for _, prefix := range prefixes {
		s.lists(prefix, want)
	}
	for _, key := range hostileKeys {
		s.has(key, want[key])
		s.ok(s.e.Delete(s.ctx, key))
		s.ok(s.e.Delete(s.ctx, key))
		s.has(key, nil)
		delete(want, key)
	}
	s.reopen()
	s.lists("", want)
	s.ok(s.e.Clear(s.ctx))
	s.reopen()
	s.lists("", nil)
}

func (s *suite) values() {
	texts := [][]byte{[]byte(`null`), []byte(`{"b":1,"a":[true,1.5,"é"]}`), value(strings.Repeat("x", 5000)), value(strings.Repeat("x", data.MaxValue-2))}
	if !s.opts.JSON {
		texts = append(texts, []byte{}, []byte{0}, []byte(strings.Join(hostileKeys, "\r\n")), bytes.Repeat([]byte{0}, data.MaxValue))
	}
	for _, text := range texts {
		keys, want := []string{"one", "two"}, map[string][]byte{"one": text, "two": text}
		if len(text) > 1<<20 { // one takes long enough
			keys = keys[:1]
			delete(want, "two")
			s.ok(s.e.Delete(s.ctx, "two"))
		}
		mine := bytes.Clone(text)
		s.save(mine, keys...)
		clear(mine) // the engine must have a copy
		got, _, err := s.e.Load(s.ctx, "one")
		s.ok(err)
		clear(got) // the caller must have a copy, too
		s.has("one", text)
		s.lists("", want)
	}
}

func (s *suite) swap() {
	try := func(old []byte, ok bool, to string, want bool) {
		s.Helper()
		swapped, err := s.e.Swap(s.ctx, "key", old, ok, value(to))
		s.ok(err)
		s.equal("Swap to "+to, swapped, want)
	}
	try(value("a"), true, "b", false)
	try(nil, false, "a", true)
	try(nil, false, "b", false)
	first := s.load("key")
	try(first, false, "b", false)
	try(first, true, "b", true)
	try(first, true, "c", false)
	s.has("key", value("b"))
	s.save([]byte(`{"b": 1, "a": 2}`), "key")
	last := s.load("key") // with the option JSON, the text may differ
	try(last, true, "c", true)
	s.ok(s.e.Delete(s.ctx, "key"))
	try(last, true, "d", false)
	s.lists("", nil)
}

func (s *suite) update() {
	const savers, each = 8, 20
	store, err := data.New[string](s.e, data.Options[int]{}) // the test closes the engine
	s.ok(err)
	add := func(n int, _ bool) (int, error) { return n + 1, nil }
	var all sync.WaitGroup
	for range savers {
		all.Go(func() {
			for range each {
				if err := store.Update(s.ctx, "count", add); err != nil {
					s.Error(err)
				}
			}
		})
	}
	all.Wait()
	s.has("count", fmt.Append(nil, savers*each))
}

// atomic saves two items again and again with contexts that end at a random moment. The
// error must say whether they were saved.
func (s *suite) atomic() {
	before := []byte(`0`)
	for i := range 50 {
		s.save(before, "a", "b")
		ctx, cancel := context.WithTimeout(s.ctx, rand.N(time.Millisecond<<(i%6)))
		after := value(strings.Repeat("x", i))
		err := s.e.Save(ctx, items(after, "a", "b"))
		cancel()
		var a, b []byte
		for item, err := range s.e.List(s.ctx, "", true) { // a snapshot, if the engine has one: an undecided change may come later
			s.ok(err)
			a, b = b, item.Value
		}
		undecided := errors.Is(err, data.ErrUndecided)
		saved, none := s.same(a, after) && s.same(b, after), s.same(a, before) && s.same(b, before)
		if err == nil && !saved || err != nil && !undecided && !none || !s.opts.Partial && !saved && !none {
			s.Fatalf("Save returned %v, and then there is %.40q and %.40q", err, a, b)
		}
	}
}

func (s *suite) list() {
	var stay []string
	for i := range 100 {
		stay = append(stay, "stay"+string([]byte{byte(i)}))
	}
	s.save(value("x"), stay...)
	ctx, cancel := context.WithCancel(s.ctx)
	var writer sync.WaitGroup
	defer writer.Wait()
	defer cancel()
	writer.Go(func() {
		for i := 0; ctx.Err() == nil && !s.Failed(); i++ {
			same, other := stay[i%len(stay)], stay[i%len(stay)]+"\x01"
			if err := errors.Join(s.e.Save(s.ctx, items(value("x"), same, other)), s.e.Delete(s.ctx, other)); err != nil {
				s.Error(err)
			}
		}
	})
	for round := range 4 {
		var got []string
		for item, err := range s.e.List(s.ctx, "stay", round%2 == 0) {
			s.ok(err)
			if got = append(got, item.Key); len(item.Key) == 5 && round%2 == 0 { // the engine can be used in the loop
				s.has(item.Key, item.Value)
				s.save(item.Value, item.Key, "other")
			}
		}
		s.equal("in order, each once", got, slices.Compact(slices.Sorted(slices.Values(got))))
		s.equal("all that stay", slices.DeleteFunc(got, func(key string) bool { return len(key) == 6 }), stay)
	}
	for range s.e.List(s.ctx, "", true) {
		break // after break, the engine must still work
	}
	s.has(stay[0], value("x"))
}

func (s *suite) contexts() {
	s.save(value("a"), "key")
	why := errors.New("datatest: ended on purpose")
	ctx, cancel := context.WithCancelCause(s.ctx)
	cancel(why)
	_, _, load := s.e.Load(ctx, "key")
	_, has := s.e.Has(ctx, "key")
	_, swap := s.e.Swap(ctx, "key", value("a"), true, value("b"))
	_, length := s.e.Len(ctx)
	errs := map[string]error{
		"Save": s.e.Save(ctx, items(value("b"), "key")), "Load": load, "Has": has, "Swap": swap,
		"Delete": s.e.Delete(ctx, "key"), "List": nil, "Len": length, "Clear": s.e.Clear(ctx),
	}
	for _, errs["List"] = range s.e.List(ctx, "", true) {
	}
	for what, err := range errs {
		if !errors.Is(err, why) && !errors.Is(err, context.Canceled) || errors.Is(err, data.ErrUndecided) {
			s.Errorf("%s with a context that has ended: got error %v", what, err)
		}
	}
	s.lists("", map[string][]byte{"key": value("a")})
}

// hostile gives the engine values that it may refuse, but must not change or lose.
func (s *suite) hostile() {
	for _, text := range []string{
		strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000), strings.Repeat("[", 1_000_000), `"\u0000"`, `{"a":1e400}`, `{"a":1,"a":2}`,
		`{`, "", "\x00", `"` + "\xff" + `"`, `"\ud800"`, "nul",
	} {
		err := s.e.Save(s.ctx, items([]byte(text), "k"))
		got := s.load("k")
		if (got != nil) != (err == nil) || !s.opts.JSON && string(got) != text || err != nil && (!s.opts.JSON || len(err.Error()) > 1000) {
			s.Errorf("%.40q: got error %.1000v, and then %.40q", text, err, got)
		}
		s.ok(s.e.Delete(s.ctx, "k"))
	}
}

// random makes random calls, and compares the engine with a map.
func (s *suite) random() {
	seed := rand.Uint64()
	s.Logf("seed %d", seed)
	random, keys, want := rand.New(rand.NewPCG(seed, 0)), hostileKeys[:20], map[string][]byte{}
	for range 600 {
		first := random.IntN(len(keys) - 5)
		key, text := keys[first], value(strings.Repeat("v", random.IntN(5)))
		switch call := random.IntN(60); {
		case call < 20:
			some := keys[first : first+1+random.IntN(5)]
			s.save(text, some...)
			for _, key := range some {
				want[key] = text
			}
		case call < 35:
			old := s.load(key)
			swapped, err := s.e.Swap(s.ctx, key, old, old != nil, text)
			s.ok(err)
			s.equal("Swap", swapped, true)
			want[key] = text
		case call < 50:
			s.ok(s.e.Delete(s.ctx, key))
			delete(want, key)
		case call < 51:
			s.ok(s.e.Clear(s.ctx))
			clear(want)
		default:
			s.lists([]string{"", "a", "c"}[random.IntN(3)], want)
		}
		s.has(key, want[key])
	}
}
