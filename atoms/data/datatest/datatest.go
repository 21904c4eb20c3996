// Package datatest checks that an engine keeps what [data.Engine] and [data.Store] promise:
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
	// JSON says that values must be JSON, and that those loaded may be other texts of the
	// same JSON. Values that it cannot keep, it must refuse.
	JSON bool
	// Partial says that of several items saved at once some may be saved without the others.
	Partial bool
	// Reopen, if it is not nil, opens again what has been closed, in the same place.
	Reopen func(t testing.TB, closed data.Engine) data.Engine
}

// Run runs the suite. Open opens an empty engine, which Run closes, for each of its tests.
func Run(t *testing.T, open func(t testing.TB) data.Engine, opts Options) {
	for _, test := range []struct {
		name string
		run  func(s *suite)
	}{
		{"keys of any bytes", (*suite).keys},
		{"prefixes", (*suite).prefixes},
		{"values", (*suite).values},
		{"swap", (*suite).swap},
		{"update loses nothing", (*suite).update},
		{"all or nothing", (*suite).atomic},
		{"list while writing", (*suite).list},
		{"ended contexts", (*suite).contexts},
		{"hostile input", (*suite).hostile},
		{"reopen", (*suite).reopen},
		{"random calls", (*suite).random},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &suite{T: t, opts: opts, ctx: context.Background(), e: open(t)}
			test.run(s)
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

func value(text string) []byte {
	encoded, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return encoded
}

func (s *suite) save(key string, value []byte) {
	s.Helper()
	s.ok(s.e.Save(s.ctx, []data.Item{{Key: key, Value: value}}))
}

// has checks the value of a key; nil is none.
func (s *suite) has(key string, want []byte) {
	s.Helper()
	got, ok, err := s.e.Load(s.ctx, key)
	s.ok(err)
	there, err := s.e.Has(s.ctx, key)
	s.ok(err)
	if ok != (want != nil) || there != ok || !s.same(got, want) {
		s.Fatalf("%.40q: Load got %.40q, %v and Has %v, want %.40q", key, got, ok, there, want)
	}
}

// same reports whether values are equal, or the same JSON if that is all there is to say.
func (s *suite) same(a, b []byte) bool {
	if !s.opts.JSON || len(a) == 0 || len(b) == 0 {
		return bytes.Equal(a, b)
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// lists checks what List and Len return.
func (s *suite) lists(prefix string, want map[string][]byte) {
	s.Helper()
	sorted := append([]string{}, slices.Sorted(maps.Keys(want))...)
	sorted = slices.DeleteFunc(sorted, func(key string) bool { return !strings.HasPrefix(key, prefix) })
	for _, values := range []bool{true, false} {
		keys := []string{}
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
	"\x00", "a\x00", "a\x00b", "\n", "\xff", "\xff\xff", "\xc3\x28", "é", "e\u0301", "'; drop table data; --", `"`, "%", "%%", "_", "*", "?", "[a]", ":", "C:x", "a:b", "😀",
	strings.Repeat("a", 255), strings.Repeat("a", 256), strings.Repeat("A", data.MaxKey), strings.Repeat("a", data.MaxKey), strings.Repeat("a", data.MaxKey-1) + "b",
	strings.Repeat("\x00", data.MaxKey), strings.Repeat("\xff", data.MaxKey), strings.Repeat("/", data.MaxKey), "lock", ".lock", "x.tmp", "x.json",
}

func (s *suite) keys() {
	want := map[string][]byte{}
	for _, key := range hostileKeys {
		s.has(key, nil)
		want[key] = value("value of " + key)
		s.save(key, want[key])
	}
	for b := range 256 {
		key := "byte" + string([]byte{byte(b)})
		want[key] = value(key)
		s.save(key, want[key])
	}
	s.lists("", want)
	for _, key := range hostileKeys {
		s.has(key, want[key])
		s.ok(s.e.Delete(s.ctx, key))
		s.ok(s.e.Delete(s.ctx, key))
		s.has(key, nil)
		delete(want, key)
	}
	s.lists("", want)
	s.ok(s.e.Clear(s.ctx))
	s.lists("", nil)
}

func (s *suite) prefixes() {
	prefixes := []string{"", "a", "a%", "a_", "a*", "a?", `a\`, "a[", "a\xff", "a\xff\xff", "\xff", "\xff\xff", "a\x00", "b", "A", "é", "\xc3", "a'", strings.Repeat("x", 200)}
	want := map[string][]byte{}
	for _, prefix := range prefixes {
		for _, rest := range []string{"", "\x00", "1", "b/c", "\xff"} {
			if key := prefix + rest; key != "" {
				want[key] = value(key)
				s.save(key, want[key])
			}
		}
	}
	for _, prefix := range append(prefixes, "none", strings.Repeat("x", data.MaxKey)) {
		s.lists(prefix, want)
	}
}

func (s *suite) values() {
	texts := [][]byte{[]byte(`null`), []byte(`{"b":1,"a":[true,1.5,"é"]}`), value(strings.Repeat("x", 5000)), value(strings.Repeat("x", data.MaxValue-2))}
	if !s.opts.JSON {
		var all []byte
		for b := range 256 {
			all = append(all, byte(b))
		}
		texts = append(texts, []byte{}, []byte{0}, all, []byte("\n\r\n"), []byte("\xff\xfe"), bytes.Repeat([]byte{0}, data.MaxValue))
	}
	for _, text := range texts {
		for _, key := range []string{"one", "two"} {
			mine := bytes.Clone(text)
			s.save(key, mine)
			clear(mine) // the engine must have a copy
			got, _, err := s.e.Load(s.ctx, key)
			s.ok(err)
			clear(got) // so must the caller
			s.has(key, text)
		}
		s.lists("", map[string][]byte{"one": text, "two": text})
	}
}

func (s *suite) swap() {
	try := func(old []byte, ok bool, to string, want bool) {
		s.Helper()
		swapped, err := s.e.Swap(s.ctx, "key", old, ok, value(to))
		s.ok(err)
		s.equal("Swap to "+to, swapped, want)
	}
	load := func() []byte { // what Swap takes
		old, _, err := s.e.Load(s.ctx, "key")
		s.ok(err)
		return old
	}
	try(value("a"), true, "b", false)
	s.has("key", nil)
	try(nil, false, "a", true)
	try(nil, false, "b", false)
	first := load()
	try(first, true, "b", true)
	try(first, true, "c", false)
	s.has("key", value("b"))
	s.save("key", []byte(`{"b": 1, "a": 2}`))
	try(load(), true, "c", true)
	last := load()
	s.ok(s.e.Delete(s.ctx, "key"))
	try(last, true, "d", false)
	s.has("key", nil)
	s.lists("", nil)
}

// open makes a store of the engine. Its Close is that of the test.
func (s *suite) store() data.Store[string, []byte] {
	store, err := data.New[string](s.e, data.Options[[]byte]{Codec: raw{}})
	s.ok(err)
	return store
}

type raw struct{}

func (raw) Encode(value []byte) ([]byte, error)   { return value, nil }
func (raw) Decode(encoded []byte) ([]byte, error) { return encoded, nil }

func (s *suite) update() {
	const savers, each = 8, 20
	store := s.store()
	var all sync.WaitGroup
	for range savers {
		all.Go(func() {
			for range each {
				err := store.Update(s.ctx, "count", func(old []byte, ok bool) ([]byte, error) {
					var n int
					if ok && json.Unmarshal(old, &n) != nil {
						s.Errorf("Update got %q", old)
					}
					clear(old) // it is the caller's
					return json.Marshal(n + 1)
				})
				if err != nil {
					s.Error(err)
				}
			}
		})
	}
	all.Wait()
	want, err := json.Marshal(savers * each)
	s.ok(err)
	s.has("count", want)
}

// atomic saves two items again and again with contexts that end at some moment. The error
// must say what has become of them.
func (s *suite) atomic() {
	before := []byte(`0`)
	items := func(v []byte) []data.Item { return []data.Item{{Key: "a", Value: v}, {Key: "b", Value: v}} }
	s.ok(s.e.Save(s.ctx, items(before)))
	begun := time.Now()
	s.ok(s.e.Save(s.ctx, items(before)))
	took := time.Since(begun)
	for i := range 50 {
		ctx, cancel := context.WithTimeout(s.ctx, rand.N(2*took+1))
		after := value(strings.Repeat("x", i))
		err := s.e.Save(ctx, items(after))
		cancel()
		a, _, err1 := s.e.Load(s.ctx, "a")
		b, _, err2 := s.e.Load(s.ctx, "b")
		s.ok(errors.Join(err1, err2))
		undecided := errors.Is(err, data.ErrUndecided)
		if saved := s.same(a, after) && s.same(b, after); (err == nil) != saved && !undecided {
			s.Fatalf("Save returned %v, and then there is %.40q and %.40q", err, a, b)
		}
		if none := s.same(a, before) && s.same(b, before); err != nil && !undecided && !none || !s.opts.Partial && !s.same(a, b) {
			s.Fatalf("Save returned %v, and then there is %.40q and %.40q", err, a, b)
		}
		before = a
		s.ok(s.e.Save(s.ctx, items(before)))
	}
}

func (s *suite) list() {
	var stay []string
	for i := range 100 {
		key := "stay" + string([]byte{byte(i)})
		stay = append(stay, key)
		s.save(key, value(key))
	}
	ctx, cancel := context.WithCancel(s.ctx)
	var writer sync.WaitGroup
	defer writer.Wait()
	defer cancel()
	writer.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			same, key := stay[i%len(stay)], "stay"+string([]byte{byte(i % 100), 1})
			items := []data.Item{{Key: same, Value: value(same)}, {Key: key, Value: value(key)}}
			if err := errors.Join(s.e.Save(s.ctx, items), s.e.Delete(s.ctx, key)); err != nil {
				s.Error(err)
				return
			}
		}
	})
	for round := range 4 {
		var got []string
		for item, err := range s.e.List(s.ctx, "stay", round%2 == 0) {
			s.ok(err)
			if got = append(got, item.Key); len(item.Key) == 5 && round%2 == 0 { // the engine can be used in the loop
				s.has(item.Key, item.Value)
				s.save(item.Key, item.Value)
				s.save("other", value("x"))
				s.ok(s.e.Delete(s.ctx, "other"))
			}
		}
		s.equal("in order, each once", slices.IsSorted(got) && len(slices.Compact(slices.Clone(got))) == len(got), true)
		s.equal("all that stay", slices.DeleteFunc(got, func(key string) bool { return len(key) == 6 }), stay)
	}
	cancel()
	writer.Wait()
	for range s.e.List(s.ctx, "", true) {
		break // and then the engine still works
	}
	s.has(stay[0], value(stay[0]))
}

func (s *suite) contexts() {
	s.save("key", value("a"))
	why := errors.New("datatest: ended on purpose")
	ctx, cancel := context.WithCancelCause(s.ctx)
	cancel(why)
	_, _, load := s.e.Load(ctx, "key")
	_, has := s.e.Has(ctx, "key")
	_, swap := s.e.Swap(ctx, "key", value("a"), true, value("b"))
	_, length := s.e.Len(ctx)
	var list error
	for _, err := range s.e.List(ctx, "", true) {
		list = err
	}
	for what, err := range map[string]error{
		"Save": s.e.Save(ctx, []data.Item{{Key: "key", Value: value("b")}}), "Load": load, "Has": has, "Swap": swap,
		"Delete": s.e.Delete(ctx, "key"), "List": list, "Len": length, "Clear": s.e.Clear(ctx),
	} {
		if !errors.Is(err, why) && !errors.Is(err, context.Canceled) || errors.Is(err, data.ErrUndecided) {
			s.Errorf("%s with a context that has ended: got error %v", what, err)
		}
	}
	s.lists("", map[string][]byte{"key": value("a")})
}

// hostile gives the engine what it may refuse, but must not lose or choke on.
func (s *suite) hostile() {
	begun := time.Now()
	store := s.store()
	if err := store.Save(s.ctx, strings.Repeat("k", 10_000), value("x")); err == nil || len(err.Error()) > 500 {
		s.Errorf("a key of 10 kB: got error %.1000v", err)
	}
	if err := store.Save(s.ctx, "k", value(strings.Repeat("x", 100_000_000))); err == nil || len(err.Error()) > 500 {
		s.Errorf("a value of 100 MB: got error %.1000v", err)
	}
	texts := []string{
		strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000), strings.Repeat("[", 1_000_000), `"\u0000"`, `{"a":1e400}`, `{"a":1,"a":2}`,
		`{`, "", "\x00", `"` + "\xff" + `"`, `"\ud800"`, "nul",
	}
	for _, text := range texts {
		err := store.Save(s.ctx, "k", []byte(text))
		got, ok, load := store.Load(s.ctx, "k")
		s.ok(load)
		if err == nil && !ok || err == nil && !s.opts.JSON && string(got) != text || err != nil && (!s.opts.JSON || ok || len(err.Error()) > 1000) {
			s.Errorf("%.40q: got error %.1000v, and then %.40q", text, err, got)
		}
		s.ok(store.Delete(s.ctx, "k"))
	}
	if took := time.Since(begun); took > time.Minute {
		s.Errorf("it took %v", took)
	}
}

func (s *suite) reopen() {
	if s.opts.Reopen == nil {
		s.Skip("there is no Options.Reopen")
	}
	want := map[string][]byte{}
	for range 3 {
		for _, key := range hostileKeys {
			want[key] = value(key + strings.Repeat("x", len(want[key])%7))
			s.save(key, want[key])
		}
		s.ok(s.e.Close())
		s.e = s.opts.Reopen(s.T, s.e)
		s.lists("", want)
		s.ok(s.e.Delete(s.ctx, "a"))
		delete(want, "a")
	}
	s.ok(s.e.Clear(s.ctx))
	s.ok(s.e.Close())
	s.e = s.opts.Reopen(s.T, s.e)
	s.lists("", nil)
}

// random makes the same calls of the engine and of one in memory.
func (s *suite) random() {
	seed := rand.Uint64()
	s.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	model := &suite{T: s.T, opts: s.opts, ctx: s.ctx, e: Memory()}
	keys := hostileKeys[:20]
	for range 600 {
		key, text := keys[random.IntN(len(keys))], value(strings.Repeat("v", random.IntN(5)))
		var old [2][]byte
		var ok, swapped [2]bool
		call, n := random.IntN(60), 1+random.IntN(5)
		first := random.IntN(len(keys) - n)
		for i, e := range []data.Engine{s.e, model.e} {
			var err error
			switch {
			case call < 15:
				err = e.Save(s.ctx, []data.Item{{Key: key, Value: text}})
			case call < 20:
				var items []data.Item
				for _, key := range keys[first : first+n] {
					items = append(items, data.Item{Key: key, Value: text})
				}
				err = e.Save(s.ctx, items)
			case call < 35:
				if old[i], ok[i], err = e.Load(s.ctx, key); err == nil && call < 30 {
					swapped[i], err = e.Swap(s.ctx, key, old[i], ok[i] != (call < 22), text)
				}
			case call < 50:
				err = e.Delete(s.ctx, key)
			case call < 51:
				err = e.Clear(s.ctx)
			}
			s.ok(err)
		}
		if !s.same(old[0], old[1]) || ok[0] != ok[1] || swapped[0] != swapped[1] {
			s.Fatalf("%q: got %q, %v, %v, want %q, %v, %v", key, old[0], ok[0], swapped[0], old[1], ok[1], swapped[1])
		}
		if call >= 50 {
			want := map[string][]byte{}
			for item, err := range model.e.List(s.ctx, "", true) {
				s.ok(err)
				want[item.Key] = item.Value
			}
			s.lists([]string{"", "a", "c"}[random.IntN(3)], want)
		}
	}
}
