package lru

// deadlines is a heap of entries, the one that may expire first on top. Readers extend lives
// without the lock. So the heap orders entries by a time before which they do not expire. At
// that time the entry is checked again.
type deadlines[K comparable, V any] []deadline[K, V]

type deadline[K comparable, V any] struct {
	at int64
	e  *entry[K, V]
}

func (d *deadlines[K, V]) add(e *entry[K, V]) {
	*d = append(*d, deadline[K, V]{})
	d.put(len(*d)-1, deadline[K, V]{e.expires.Load(), e})
}

func (d *deadlines[K, V]) remove(e *entry[K, V]) {
	n := len(*d) - 1
	last := (*d)[n]
	(*d)[n] = deadline[K, V]{}
	*d = (*d)[:n]
	if last.e != e {
		d.put(int(e.place), last)
	}
}

// replace puts e in the place of old, or in an earlier one.
func (d deadlines[K, V]) replace(old, e *entry[K, V]) {
	i := int(old.place)
	d.put(i, deadline[K, V]{min(d[i].at, e.expires.Load()), e})
}

// put puts x where it belongs, starting at place i, and moves other entries out of its way.
func (d deadlines[K, V]) put(i int, x deadline[K, V]) {
	for i > 0 {
		up := (i - 1) / 2
		if d[up].at <= x.at {
			break
		}
		d.set(i, d[up])
		i = up
	}
	for {
		down := 2*i + 1
		if down+1 < len(d) && d[down+1].at < d[down].at {
			down++
		}
		if down >= len(d) || d[down].at >= x.at {
			break
		}
		d.set(i, d[down])
		i = down
	}
	d.set(i, x)
}

func (d deadlines[K, V]) set(i int, x deadline[K, V]) {
	d[i] = x
	x.e.place = uint32(i)
}

// sweepLooks is how many entries an insertion checks for expiry. While the shard is full it
// checks more, because no live entry is evicted while another has expired.
const sweepLooks = 4

// sweepChunk is how many entries are looked at before the lock is released for others.
const sweepChunk = 1024

// sweep checks at most n entries that may have expired, and removes the expired ones. It
// reports whether there may be more.
func (s *shard[K, V]) sweep(now int64, looks int) (more bool) {
	for range looks {
		if len(s.deadlines) == 0 || s.deadlines[0].at > now {
			return false
		}
		if e := s.deadlines[0].e; e.lapse(now) {
			s.remove(e, ReasonExpired)
		} else {
			s.deadlines.put(0, deadline[K, V]{e.expires.Load(), e})
		}
	}
	return true
}
