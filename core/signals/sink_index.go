package signals

import "github.com/ephemeralgo/ephemeral/core/internal/lists"

// Watchers of a name (handlers, gates, monitors, counters) are found by its text when a signal is raised. Which names
// are present is asked rarely, mostly for the same few names. So nothing enters names at a raise, which was most of its
// cost with names that are raised once. A pattern that is asked for, and a name that is asked for again, gets a counter.
//
// The index is a cache of a part of the window without holes. It may be cleared at any time. A question catches up
// with the facts that were there at its start, for 0.25 ms under one lock: a number of facts is no bound, since the
// parts of a large map grow at about the same time. A signal that is pushed out before a question costs one comparison.
//
// Rejected: an entry for each name, found by a map at each raise. Watched names entered at once and others later: the
// index has holes. Counting in chunks for a new pattern: facts that leave between two chunks are counted wrongly. A
// table of all names.

// A nameIndex finds the facts of a name in a ring. It is a cache: it has the facts from the
// tail of the ring to end, and may be cleared at any time. Facts that leave the ring before
// somebody asks by name never enter it.
//
// The facts of one name are chained by Seq from the newest to the oldest. A link below the
// tail leads out of the ring, so removing and evicting unlink nothing.
type nameIndex struct {
	end   uint64 // Seq of the first fact that is not in it; up to the tail: it has none
	names map[string]*indexed
	peak  int                  // highest number of names since it was cleared
	spare *indexed             // of the name that has gone last
	seen  byteSet              // places of all names since it was cleared
	links []*[linkSegment]step // by place in the ring; made when they are needed
}

// indexed is a name with facts in the index.
type indexed struct {
	text   string
	newest uint64 // Seq of its newest fact
	count  int
}

// step leads from a fact to the next older fact of its name.
type step struct {
	name     *indexed // nil: a gap
	previous uint64
}

const (
	linkSegment = 256 // 4 KiB
	keptLinks   = 1   // segments that an empty index keeps
	keptNames   = 64  // a map that had more names is dropped when most have gone: a Go map never shrinks
)

// at returns the step of a fact that is in the index.
func (x *nameIndex) at(r *ring, seq uint64) *step {
	i := seq & r.mask
	return &x.links[i/linkSegment][i%linkSegment]
}

// add takes in the next facts of the ring, at most that many, up to Seq to. It reports whether
// there are more.
func (x *nameIndex) add(r *ring, most int, to uint64) (more bool) {
	if x.names == nil {
		x.names = make(map[string]*indexed)
		x.links = make([]*[linkSegment]step, r.mask/linkSegment+1)
	}
	x.end = max(x.end, r.tail)
	for ; x.end < to && most > 0; most-- {
		i := x.end & r.mask
		segment := &x.links[i/linkSegment]
		if *segment == nil {
			*segment = new([linkSegment]step)
		}
		if f := r.at(x.end); f.name == "" {
			(*segment)[i%linkSegment] = step{}
		} else {
			n := x.enter(f.name)
			(*segment)[i%linkSegment] = step{n, n.newest}
			n.newest = x.end
		}
		x.end++
	}
	return x.end < to
}

// enter counts one more fact of a name.
func (x *nameIndex) enter(text string) *indexed {
	n := x.names[text]
	if n == nil {
		if n, x.spare = x.spare, nil; n == nil {
			n = new(indexed)
		}
		n.text = text
		x.names[text] = n
		x.seen.set(place(text))
		x.peak = max(x.peak, len(x.names))
	}
	n.count++
	return n
}

// drop removes a fact, if it is in the index. Its step still leads on.
func (x *nameIndex) drop(r *ring, seq uint64) {
	if seq >= x.end {
		return
	}
	s := x.at(r, seq)
	n := s.name
	s.name = nil
	if n.newest == seq {
		n.newest = s.previous
	}
	if n.count--; n.count > 0 {
		return
	}
	delete(x.names, n.text)
	*n = indexed{}
	x.spare = n
	if len(x.names) < x.peak/16 && x.peak > keptNames || len(x.names) == 0 && len(x.links) > keptLinks {
		*x = nameIndex{}
	}
}

// newest returns the Seq of the newest fact of a name, 0 if there is none, and how many facts
// have the name.
func (x *nameIndex) newest(name string) (seq uint64, count int) {
	if x.seen.has(place(name)) {
		if n := x.names[name]; n != nil {
			return n.newest, n.count
		}
	}
	return 0, 0
}

// nameCounts count the facts of each name, where all facts are counted when they come.
type nameCounts struct {
	names map[string]int
	peak  int
}

func (c *nameCounts) add(name string) {
	lists.Put(&c.names, name, c.names[name]+1)
	c.peak = max(c.peak, len(c.names))
}

func (c *nameCounts) remove(name string) {
	if n := c.names[name]; n > 1 {
		c.names[name] = n - 1
		return
	}
	if delete(c.names, name); len(c.names) == 0 && c.peak > keptNames {
		*c = nameCounts{}
	}
}
