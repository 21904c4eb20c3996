package core

// index finds operations by id. Ids come in ascending order, so the live ones are
// close together and their low bits alone tell most of them apart; the rest go
// into a map.
type index struct {
	slots    []*Operation // length is a power of two
	overflow map[OperationID]*Operation
	n        int
	version  int // changes when slots do
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
		x.grow()
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
	if x.overflow == nil {
		x.overflow = make(map[OperationID]*Operation)
	}
	x.overflow[o.id] = o
}

func (x *index) remove(o *Operation) {
	x.n--
	slot := &x.slots[uint64(o.id)&uint64(len(x.slots)-1)]
	if *slot == o {
		*slot = nil
		return
	}
	delete(x.overflow, o.id)
	if len(x.overflow) == 0 {
		x.overflow = nil // a Go map never shrinks
	}
}

func (x *index) grow() {
	old, overflow := x.slots, x.overflow
	x.slots, x.overflow = make([]*Operation, max(64, 2*len(old))), nil
	x.version++
	for _, o := range old {
		if o != nil {
			x.place(o)
		}
	}
	for _, o := range overflow {
		x.place(o)
	}
}
