package core

import "maps"

// keyState is a key with operations that are pending or running. A key without
// any is forgotten.
type keyState struct {
	text    string
	running int
	pending int
	turns   []turn // by lane
	only    [1]turn
	spare   *keyState // the next one that is not used
}

// turn is the pending operations of a key in a lane.
type turn struct {
	key   *keyState
	up    *Operation // the first one, in the lane's line, if one of the key may start
	queue line       // the others
}

// keyTable finds the keys that are live.
type keyTable struct {
	live  map[string]*keyState
	spare *keyState // were used, while any are live
	peak  int       // of len(live) since the map was made, which never shrinks
}

func (t *keyTable) obtain(text string, lanes int) *keyState {
	if k := t.live[text]; k != nil {
		return k
	}
	k := t.spare
	if k == nil {
		k = newKeyState(lanes)
	}
	t.spare, k.spare = k.spare, nil // a new one has no spare behind it
	k.text = text
	put(&t.live, text, k)
	t.peak = max(t.peak, len(t.live))
	return k
}

func newKeyState(lanes int) *keyState {
	k := new(keyState)
	if k.turns = k.only[:]; lanes > 1 {
		k.turns = make([]turn, lanes)
	}
	for i := range k.turns {
		k.turns[i].key = k
	}
	return k
}

// release forgets a key that has nothing left.
func (t *keyTable) release(k *keyState) {
	if k.running+k.pending > 0 {
		return
	}
	delete(t.live, k.text)
	k.text, k.spare, t.spare = "", t.spare, k
	if len(t.live) == 0 {
		k.spare = nil // an idle table keeps one
	}
	if t.peak > 64 && len(t.live) < t.peak/8 {
		fewer := make(map[string]*keyState, 2*len(t.live))
		maps.Copy(fewer, t.live)
		t.live, t.peak = fewer, len(fewer)
	}
}
