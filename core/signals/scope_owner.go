package signals

import "sync/atomic"

// An Owner is one who raises signals on a [Scope], and whose signals leave together: see
// [Scope.Evict]. It is a small value that must not be copied after its first signal: make it a
// field of what it stands for.
type Owner struct {
	// ID is in its signals as [Signal].Operation. Give each owner of a sink another one, and do not change it. Coordinators
	// count their operations up from 1: where they use the same sink, begin at 1<<63. 0 looks like no owner.
	ID OperationID
	//ephemeral:none
	Key string // of its signals that are raised without one; do not change it after the first signal

	first *ownFact                // guarded by Sink.mu; older than the facts in rest; nil: none
	rest  atomic.Pointer[ownMore] // what few owners need; nil: it has raised nothing
}

// ownFact is a fact that an owner has raised, without the fields that the owner has.
type ownFact struct {
	seq  uint64
	name string
	key  string
	at   int64
	more *more
}

// ownMore exists after an owner has raised a second signal, or has held one. Guarded by Sink.mu.
type ownMore struct {
	facts    []ownFact // raised after first, oldest first; facts before index from have been dropped
	from     int
	dropped  bool
	released bool                 // holds nothing any more
	holds    map[uint64]*heldFact // by Seq
}

// Values of Owner.rest that are only compared, never changed.
var (
	firstOnly = new(ownMore) // has raised one signal; has no other details
	evicted   = new(ownMore)
)

// maxFacts is how many of its raised signals an owner shows: the newest. It shows all
// held ones in addition. It is the default capacity of a sink.
const maxFacts = 1000

// more returns the owner's rest, and makes it if there is none. After Evict, it returns evicted.
func (o *Owner) more() *ownMore {
	for {
		d := o.rest.Load()
		if d != nil && d != firstOnly {
			return d
		}
		if made := new(ownMore); o.rest.CompareAndSwap(d, made) {
			return made
		}
	}
}

// leave evicts an owner that has raised nothing, and reports whether it has.
func (o *Owner) leave() bool { return o.rest.Load() == nil && o.rest.CompareAndSwap(nil, evicted) }

// A Past is what an owner was when it was evicted.
type Past struct {
	ID    OperationID
	Key   string
	first *ownFact
	rest  *ownMore // nil: it has raised nothing
}

// raised visits the facts that were raised, oldest first.
func (p *Past) raised(visit func(*ownFact)) {
	if p.first != nil {
		visit(p.first)
	}
	if p.rest != nil {
		for i := range p.rest.facts[p.rest.from:] {
			visit(&p.rest.facts[p.rest.from+i])
		}
	}
}
