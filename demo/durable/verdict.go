package main

import (
	"context"
	"fmt"
	"io"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// A verdict says what the database holds after the run.
type verdict struct {
	done    int // items with an effect
	waiting int // items that are not done yet
	lost    int // acknowledged items that are neither done nor waiting
	twice   int // second effects of an item
	late    int // effects out of the order of their key
	kills   int // of processes
	cut     int // attempts that began and did not end
}

// read fills the verdict from the queue and the effects.
func (v *verdict) read(ctx context.Context, q *durable.Queue[job], p *place, acknowledged int) error {
	attempts, ended := 0, 0
	for i, err := range q.Items(ctx, durable.Query{}) {
		if err != nil {
			return err
		}
		attempts += i.Attempts
		if i.State == durable.Done {
			ended++
		} else {
			v.waiting++
		}
	}
	v.cut = attempts - ended
	effects, err := p.effects(ctx)
	v.judge(effects, acknowledged)
	return err
}

// judge compares the effects, in the order of their commits, with the promises of the
// queue.
func (v *verdict) judge(effects []job, acknowledged int) {
	seen, last := map[job]bool{}, map[string]int{}
	for _, e := range effects {
		switch {
		case seen[e]:
			v.twice++
		case e.N != last[e.Key]+1:
			v.late++
		}
		seen[e], last[e.Key] = true, e.N
	}
	v.done = len(seen)
	v.lost = acknowledged - v.done - v.waiting
}

func (v *verdict) broken() bool { return v.lost != 0 || v.twice+v.late > 0 }

func (v *verdict) print(w io.Writer) {
	fmt.Fprintf(w, "\nitems           %d done, %d waiting, %d lost\n", v.done, v.waiting, v.lost)
	fmt.Fprintf(w, "effects         %d twice, %d out of the order of their key\n", v.twice, v.late)
	fmt.Fprintf(w, "attempts cut    %d, by %d kills\n", v.cut, v.kills)
}
