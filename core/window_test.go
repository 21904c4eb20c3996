package core

import (
	"fmt"
	"strings"
	"testing"
)

// ids prints a list as the ids in it, and checks its links.
func (l *opList) ids(t *testing.T) string {
	t.Helper()
	var ids []string
	var last *Operation
	n := 0
	for o := l.head; o != nil; o = o.next {
		if o.prev != last {
			t.Errorf("operation %d: the link back is wrong", o.id)
		}
		ids = append(ids, o.id.String())
		last = o
		n++
	}
	if l.tail != last || l.n != n {
		t.Errorf("got tail %p and length %d, want %p and %d", l.tail, l.n, last, n)
	}
	return strings.Join(ids, " ")
}

func TestOpList(t *testing.T) {
	var l opList
	ops := make(map[OperationID]*Operation)
	check := func(what, want string) {
		t.Helper()
		if got := l.ids(t); got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	check("empty", "")
	for id := OperationID(1); id <= 5; id++ {
		ops[id] = &Operation{id: id}
		l.push(ops[id])
	}
	check("pushed", "1 2 3 4 5")
	l.remove(ops[3])
	check("middle removed", "1 2 4 5")
	l.remove(ops[1])
	check("head removed", "2 4 5")
	l.remove(ops[5])
	check("tail removed", "2 4")
	l.push(ops[3])
	check("pushed again", "2 4 3")
	for _, id := range []OperationID{4, 2, 3} {
		l.remove(ops[id])
	}
	check("all removed", "")
}

func TestFIFO(t *testing.T) {
	var s scheduler = new(fifo)
	if s.next(0, 0) != nil || s.oldest(0) != nil || s.pending() != 0 {
		t.Error("an empty scheduler has something")
	}
	var ops []*Operation
	for id := OperationID(1); id <= 4; id++ {
		ops = append(ops, &Operation{id: id})
		s.push(ops[id-1])
	}
	check := func(what string, next OperationID, pending int) {
		t.Helper()
		if s.next(0, 0).id != next || s.next(0, 0) != s.oldest(0) || s.pending() != pending {
			t.Errorf("%s: got next %d, oldest %d, %d pending; want %d, %d, %d", what, s.next(0, 0).id, s.oldest(0).id, s.pending(), next, next, pending)
		}
	}
	check("pushed", 1, 4)
	check("next changes nothing", 1, 4)
	s.start(s.next(0, 0))
	check("started", 2, 3)
	s.remove(ops[2])
	check("another removed", 2, 2)
	s.start(s.next(0, 0))
	s.finish(ops[0])
	check("one finished", 4, 1)
	s.remove(s.oldest(0))
	if s.next(0, 0) != nil || s.pending() != 0 {
		t.Error("the scheduler is not empty")
	}
}

// windowScript steps a window through commands, with an explicit time, and says
// what leaves: "at 5: add 1, pin 1, evict, remove 2, unpin 1".
type windowScript struct {
	t   *testing.T
	w   window
	now int64
	ops map[OperationID]*Operation
}

func (s *windowScript) run(script string) (out string) {
	s.t.Helper()
	var gone []string
	for command := range strings.SplitSeq(script, ",") {
		var id OperationID
		command = strings.TrimSpace(command)
		verb, _, _ := strings.Cut(command, " ")
		fmt.Sscanf(command, verb+" %d", &id)
		o := s.ops[id]
		if o == nil && verb != "at" {
			o = &Operation{id: id}
			s.ops[id] = o
		}
		switch verb {
		case "at":
			s.now = int64(id)
			continue
		case "add":
			o.finished = s.now
			s.w.add(o)
		case "pin":
			if !s.w.pin(o, 2) {
				gone = append(gone, "(not pinned)")
			}
		case "unpin":
			if s.w.unpin(o) {
				gone = append(gone, o.id.String())
			}
		case "remove":
			s.w.remove(o)
		case "evict":
			for o := s.w.evict(s.now); o != nil; o = s.w.evict(s.now) {
				gone = append(gone, o.id.String())
			}
		default:
			s.t.Fatalf("unknown command %q", command)
		}
	}
	state := s.w.finished.ids(s.t)
	if s.w.aside.n > 0 {
		state += " aside " + s.w.aside.ids(s.t)
	}
	if s.w.len() != s.w.finished.n+s.w.aside.n {
		s.t.Errorf("len: got %d, want %d", s.w.len(), s.w.finished.n+s.w.aside.n)
	}
	return strings.TrimSpace(fmt.Sprintf("%s -> %s (%d pinned)", strings.Join(gone, " "), state, s.w.pinned))
}

func TestWindowTranscripts(t *testing.T) {
	type step struct{ script, want string }
	for _, test := range []struct {
		name   string
		window window
		steps  []step
	}{{
		"count", window{limit: 2}, []step{
			{"add 1, add 2, evict", "-> 1 2 (0 pinned)"},
			{"add 3, evict", "1 -> 2 3 (0 pinned)"},
			{"add 4, add 5, evict", "2 3 -> 4 5 (0 pinned)"},
		},
	}, {
		"none", window{limit: 0}, []step{
			{"add 1, add 2, evict", "1 2 ->  (0 pinned)"},
		},
	}, {
		"age", window{limit: 100, maxAge: 10}, []step{
			{"at 1, add 1, at 5, add 2, evict", "-> 1 2 (0 pinned)"},
			{"at 10, evict", "-> 1 2 (0 pinned)"}, // just before
			{"at 11, evict", "1 -> 2 (0 pinned)"}, // just after
			{"at 100, evict", "2 ->  (0 pinned)"},
		},
	}, {
		"a pinned one is passed over once", window{limit: 1}, []step{
			{"add 1, pin 1, add 2, evict", "-> 2 aside 1 (1 pinned)"},
			{"add 3, evict", "2 -> 3 aside 1 (1 pinned)"},
			{"unpin 1", "1 -> 3 (0 pinned)"},
		},
	}, {
		"pins are counted", window{limit: 0}, []step{
			{"add 1, pin 1, pin 1, evict", "->  aside 1 (1 pinned)"},
			{"unpin 1", "->  aside 1 (1 pinned)"},
			{"unpin 1", "1 ->  (0 pinned)"},
		},
	}, {
		"unpinned before its time", window{limit: 2}, []step{
			{"add 1, pin 1, unpin 1", "-> 1 (0 pinned)"},
			{"add 2, add 3, evict", "1 -> 2 3 (0 pinned)"},
		},
	}, {
		"pinned before it is finished", window{limit: 0}, []step{
			{"pin 1", "->  (1 pinned)"},
			{"add 1, evict", "->  aside 1 (1 pinned)"},
			{"unpin 1", "1 ->  (0 pinned)"},
		},
	}, {
		"too many pins", window{limit: 9}, []step{
			{"add 1, add 2, add 3, pin 1, pin 2, pin 3", "(not pinned) -> 1 2 3 (2 pinned)"},
			{"pin 1, unpin 2, pin 3", "-> 1 2 3 (2 pinned)"},
		},
	}, {
		"removed, pinned or not", window{limit: 1}, []step{
			{"add 1, pin 1, add 2, evict", "-> 2 aside 1 (1 pinned)"},
			{"remove 1", "-> 2 (0 pinned)"},
			{"pin 2", "-> 2 (1 pinned)"},
			{"remove 2", "->  (0 pinned)"},
		},
	}} {
		t.Run(test.name, func(t *testing.T) {
			s := windowScript{t: t, w: test.window, ops: make(map[OperationID]*Operation)}
			for _, step := range test.steps {
				if got := s.run(step.script); got != step.want {
					t.Errorf("%s:\n got %q\nwant %q", step.script, got, step.want)
				}
			}
		})
	}
}

func TestWindowAny(t *testing.T) {
	var w window
	if w.any() != nil {
		t.Error("an empty window has something")
	}
	o := &Operation{id: 1}
	w.pin(o, 1)
	w.add(o)
	w.evict(0) // moves it aside
	if w.any() != o {
		t.Error("an operation that is aside was not found")
	}
}
