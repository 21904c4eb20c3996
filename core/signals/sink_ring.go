package signals

import (
	"cmp"
	"math/bits"
	"sort"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
)

// ring is the memory of a sink: the last raised facts, by Seq. A fact's place
// follows from its Seq alone. A removed fact leaves a gap, so the ring holds
// the last capacity facts without the removed ones.
//
// The ring grows by segments, as facts arrive. It copies facts only while all of
// them fit into a part of one segment.
//
// A ring is loose if it has a segment more than the window can touch. Then it has no segments outside of the window,
// and the next one is the one that the window has left.
type ring struct {
	segments   [][]fact
	spare      []fact // a whole segment without facts
	loose      bool
	shift      uint   // log2 of the segment size
	mask       uint64 // places - 1; places is a power of two and >= capacity
	capacity   uint64
	tail, head uint64 // the window is tail <= Seq < head
	stored     int    // facts in the window that are not gaps
}

const (
	maxSegment = 1024 // 64 KiB: at most this much is allocated and not used
	minSegment = 16   // 1 KiB: a sink with few facts stays small

	looseSegments = 64 // a ring of more segments is not kept for a window that needs fewer
)

func newRing(capacity int, next uint64) ring {
	places := uint64(1) << bits.Len64(uint64(capacity-1))
	segment := min(places, maxSegment)
	return ring{
		segments: make([][]fact, places/segment),
		loose:    uint64(capacity)+segment <= places,
		shift:    uint(bits.TrailingZeros64(segment)),
		mask:     places - 1,
		capacity: uint64(capacity),
		tail:     next,
		head:     next,
	}
}

// at returns the fact of that Seq, which must be in the window.
func (r *ring) at(seq uint64) *fact {
	i := seq & r.mask
	return &r.segments[i>>r.shift][i&(1<<r.shift-1)]
}

// leave takes the oldest place out of the window.
func (r *ring) leave() {
	r.tail++
	if size := uint64(1) << r.shift; r.loose && r.tail&(size-1) == 0 {
		segment := &r.segments[(r.tail-1)&r.mask>>r.shift]
		if len(*segment) == int(size) {
			r.spare = *segment
		}
		*segment = nil
	}
}

// push returns the place of the next fact. The ring must not be full.
func (r *ring) push() *fact {
	i := r.head & r.mask
	segment, place := &r.segments[i>>r.shift], i&(1<<r.shift-1)
	if place >= uint64(len(*segment)) {
		r.grow(segment, place)
	}
	r.head++
	return &(*segment)[place]
}

// grow allocates the segment for that place: the whole segment, unless the window has few
// facts.
func (r *ring) grow(segment *[]fact, place uint64) {
	size := uint64(1) << r.shift
	if len(*segment) == 0 && r.spare != nil {
		*segment, r.spare = r.spare, nil
		return
	}
	if r.head-r.tail < size {
		size = min(size, max(minSegment, uint64(1)<<bits.Len64(place)))
	}
	bigger := make([]fact, size)
	copy(bigger, *segment)
	*segment = bigger
}

// resized returns a ring of another capacity with the same facts, which must
// fit into it. A loose ring, and one of a single segment, stay as they are if the
// capacity fits. Else segments move to the new ring. Only those that two blocks of
// Seqs share, here or there, are copied.
func (r *ring) resized(capacity int) ring {
	size := uint64(1) << r.shift
	places := r.mask + 1
	fits := uint64(capacity)+size <= places && len(r.segments) <= looseSegments
	near := len(r.segments) == 1 && uint64(capacity) <= places && uint64(capacity) > places/4
	if near || fits && r.loose {
		to := *r
		to.capacity = uint64(capacity)
		return to
	}
	to := newRing(capacity, r.tail)
	if fits {
		to.segments, to.shift, to.mask, to.loose = make([][]fact, len(r.segments)), r.shift, r.mask, true
	}
	to.stored = r.stored
	apart := r.head>>r.shift-r.tail>>r.shift < uint64(min(len(r.segments), len(to.segments)))
	for to.head < r.head {
		end := to.head&^(size-1) + size // of the block
		if whole := to.head&(size-1) == 0 && end < r.head; r.shift == to.shift && (apart || whole) {
			to.segments[to.head&to.mask>>to.shift] = r.segments[to.head&r.mask>>r.shift]
			to.head = min(end, r.head)
			continue
		}
		seq := to.head
		*to.push() = *r.at(seq)
	}
	return to
}

func (r *ring) full() bool { return r.head-r.tail == r.capacity }

// contains reports whether seq is a fact of the window and not a gap.
func (r *ring) contains(seq uint64) bool {
	return r.tail <= seq && seq < r.head && r.at(seq).name != ""
}

// since returns the lowest Seq in the window whose time is at or after cutoff.
func (r *ring) since(cutoff int64) uint64 {
	newer := func(i int) bool { return r.at(r.tail+uint64(i)).at >= cutoff }
	return r.tail + uint64(sort.Search(int(r.head-r.tail), newer))
}

// more has the rarely used fields of a fact.
type more struct {
	payload any
	cause   *link
	held    bool

	inherited bool // belongs to the sink since the ForEach or Map that raised it has returned
	restored  bool
	operation OperationID // the operation of the original, if this is a restored or forwarded fact
	source    string      // the source of the original; the fact itself belongs to the sink
	node      string      // see Signal.Node
}

// signal returns the fact as users see it.
func (f *fact) signal(seq uint64, c clock.Clock) (s Signal) {
	s.Name = f.name
	s.Key = f.key
	s.Operation, s.Source = f.origin()
	s.Time = c.Wall(f.at)
	s.Seq = seq
	if m := f.more; m != nil {
		s.payload, s.cause, s.Held, s.Node = m.payload, m.cause, m.held, m.node
	}
	return s
}

// origin returns the operation that raised the fact, or the original of the fact, and the name of
// its coordinator.
func (f *fact) origin() (id OperationID, source string) {
	switch {
	case f.source != nil:
		return f.operation, *f.source
	case f.more != nil && f.operation == 0:
		return f.more.operation, f.more.source
	}
	return f.operation, ""
}

// seqFact is a fact together with its Seq.
type seqFact struct {
	seq  uint64
	fact fact
}

func bySeq(a, b seqFact) int { return cmp.Compare(a.seq, b.seq) }

// notices reports whether gates count a fact whose name matches. They do not count
// lifecycle signals, nor facts that a finished ForEach or Map has left.
func (f *fact) notices() bool {
	return !isLifecycle(f.name) && (f.more == nil || !f.more.inherited)
}

// holds reports whether a fact is held.
func (f *fact) holds() bool { return f.more != nil && f.more.held }

// fact is one raised signal, 64 bytes. A gap has no name but keeps its time.
type fact struct {
	name      string
	key       string
	operation OperationID
	source    *string
	at        int64 // never decreases with Seq
	more      *more // fields that few facts have
}
