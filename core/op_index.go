package core

// index finds operations by id. Ids come in ascending order, so the live ones are
// close together and their low bits are different for most of them; the rest go
// into a map. It gives back what many operations took when they have gone, down to a
// size that costs less than to change it all the time.
type index struct {
	slots    []*Operation // length is a power of two; replaced, not changed, by resize
	overflow map[OperationID]*Operation
	n        int
}

func (x *index) get(id OperationID) *Operation {
	if len(x.slots) == 0 {
		return nil
	}
	if o := x.slots[uint64(id)&uint64(len(x.slots)-1)]; o != nil && o.id == id {
		return o
	}
	return x.overflow[id]
}

func (x *index) put(o *Operation) {
	if 2*x.n >= len(x.slots) {
		x.resize(max(64, 2*len(x.slots)))
	}
	x.n++
	x.place(o)
}

func (x *index) place(o *Operation) {
	slot := &x.slots[uint64(o.id)&uint64(len(x.slots)-1)]
	if *slot == nil {
		*slot = o
		return
	}
	put(&x.overflow, o.id, o)
}

func (x *index) remove(o *Operation) {
	x.n--
	if slot := &x.slots[uint64(o.id)&uint64(len(x.slots)-1)]; *slot == o {
		*slot = nil
	} else if delete(x.overflow, o.id); len(x.overflow) == 0 {
		x.overflow = nil // a Go map never shrinks
	}
	if 16*x.n < len(x.slots) && len(x.slots) > keptSlots {
		x.resize(len(x.slots) / 4)
	}
}

// keptSlots is how many an index keeps when it has become almost empty.
const keptSlots = 4096

func (x *index) resize(slots int) {
	old, overflow := x.slots, x.overflow
	x.slots, x.overflow = make([]*Operation, slots), nil
	for _, o := range old {
		if o != nil {
			x.place(o)
		}
	}
	for _, o := range overflow {
		x.place(o)
	}
}
