package quorum

import (
	"cmp"
	"slices"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A voter is an operation, a name or, with neither, a single vote.
type voter struct {
	operation core.OperationID
	name      string
	seq       uint64
}

// remembered bounds the votes that a ballot keeps of one voter, and the retractions.
const remembered = 1024

// ballot has the votes that are not retracted. The zero ballot is empty.
//
// Votes and retractions come on the goroutines that raise and retract them. So a vote may come
// after its retraction. Their order does not matter, nor does a vote that comes twice.
type ballot struct {
	votes map[voter][]signals.Signal // votes by voter, ordered by Seq; each voter has at least one
	gone  []uint64                   // Seqs of retracted votes, ascending
}

func (b *ballot) voters() int { return len(b.votes) }

func (b *ballot) cast(v voter, s signals.Signal) {
	if _, gone := slices.BinarySearch(b.gone, s.Seq); gone {
		return
	}
	votes := b.votes[v]
	i, found := slices.BinarySearchFunc(votes, s.Seq, bySeq)
	if found {
		return
	}
	if b.votes == nil {
		b.votes = make(map[voter][]signals.Signal)
	}
	b.votes[v] = newest(slices.Insert(votes, i, s))
}

func (b *ballot) takeBack(v voter, seq uint64) {
	if i, found := slices.BinarySearch(b.gone, seq); !found {
		b.gone = newest(slices.Insert(b.gone, i, seq))
	}
	votes := b.votes[v]
	i, found := slices.BinarySearchFunc(votes, seq, bySeq)
	switch {
	case !found:
	case len(votes) == 1:
		delete(b.votes, v)
	default:
		b.votes[v] = slices.Delete(votes, i, i+1)
	}
}

// list returns the newest vote of each voter, in the order in which they were cast.
func (b *ballot) list() []signals.Signal {
	list := make([]signals.Signal, 0, len(b.votes))
	for _, votes := range b.votes {
		list = append(list, votes[len(votes)-1])
	}
	slices.SortFunc(list, func(x, y signals.Signal) int { return cmp.Compare(x.Seq, y.Seq) })
	return list
}

func bySeq(s signals.Signal, seq uint64) int { return cmp.Compare(s.Seq, seq) }

// newest bounds a list. Its amortized cost is the cost of append.
func newest[E any](ascending []E) []E {
	return ascending[max(0, len(ascending)-remembered):]
}
