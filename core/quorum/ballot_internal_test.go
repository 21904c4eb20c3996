package quorum

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A ballot gets votes and retractions in any order, and some votes twice. It ends up with
// the votes that were not retracted.
func TestBallotAgainstModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	type event struct {
		by   voter
		vote signals.Signal
		back bool
	}
	for range 2000 {
		var events []event
		last := map[voter]signals.Signal{}
		for seq := range uint64(rnd.IntN(20)) {
			s := signals.Signal{Seq: seq + 1}
			by := voter{operation: core.OperationID(1 + rnd.IntN(5))}
			for range 1 + rnd.IntN(2) {
				events = append(events, event{by, s, false})
			}
			if rnd.IntN(3) == 0 {
				events = append(events, event{by, s, true})
			} else {
				last[by] = s
			}
		}
		rnd.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })

		var b ballot
		for _, n := range events {
			if n.back {
				b.takeBack(n.by, n.vote.Seq)
			} else {
				b.cast(n.by, n.vote)
			}
		}
		var want []uint64
		for _, s := range last {
			want = append(want, s.Seq)
		}
		slices.Sort(want)
		var got []uint64
		for _, s := range b.list() {
			got = append(got, s.Seq)
		}
		if !slices.Equal(got, want) || b.voters() != len(want) {
			t.Fatalf("after %v:\n got %v, %d voters\nwant %v", events, got, b.voters(), want)
		}
	}
}

func TestBallotIsBounded(t *testing.T) {
	var b ballot
	one := voter{name: "one"}
	const last = 10 * remembered
	for seq := range uint64(last) {
		b.cast(one, signals.Signal{Seq: seq})
		if seq%2 == 0 {
			b.takeBack(one, seq)
		}
	}
	votes := b.votes[one]
	if len(votes) > remembered || len(votes) < remembered-1 || len(b.gone) != remembered {
		t.Errorf("got %d votes and %d taken back, want %d of each", len(votes), len(b.gone), remembered)
	}
	if got := votes[len(votes)-1].Seq; got != last-1 {
		t.Errorf("got %d as the newest vote, want %d", got, last-1)
	}
}
