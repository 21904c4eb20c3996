// Package reputation shows scores that decay: old actions of an address count less than new
// ones. No goroutine has to clean up.
package reputation

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core/reputation"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
)

// Scenario gives four addresses a reputation by five events each, and watches it decay.
var Scenario = scenario.Scenario{
	Name:  "reputation",
	Title: "Decaying reputation: blocked today, neutral tomorrow",
	Run:   run,
}

// profiles are addresses, each with the change of its score by one event.
var profiles = []struct {
	address string
	event   float64
}{
	{"192.0.2.10", +2}, // a customer: logins that succeed
	{"192.0.2.20", +1}, // a reader: pages
	{"192.0.2.66", -1}, // a crawler: pages that do not exist
	{"192.0.2.99", -2}, // an attacker: logins that fail
}

const attacker = 3 // in profiles

// status is the verdict on a score.
func status(score float64) string {
	switch {
	case score < -5:
		return "blocked"
	case score < -2:
		return "suspicious"
	case score < +2:
		return "neutral"
	case score < +5:
		return "good"
	default:
		return "trusted"
	}
}

// limits are the numbers of requests that a program could allow for these verdicts.
const limits = "a minute: trusted ∞, good 1000, neutral 100, suspicious 10, blocked 0"

func run(ctx context.Context, s *scenario.Screen) error {
	scores, err := reputation.New[string](reputation.Options{HalfLife: time.Second, Sink: s.Sink})
	if err != nil {
		return err
	}
	for range 5 {
		for _, p := range profiles {
			scores.Update(p.address, p.event)
		}
		if err := scenario.Pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}

	s.Printf(limits)
	s.Printf("five events each, and then time passes; the half-life is 1s:")
	s.Printf("%-17s%-17s%-17s%s", profiles[0].address, profiles[1].address, profiles[2].address, profiles[3].address)
	first := read(s, scores)
	last := first
	for range 5 {
		if err := scenario.Pause(ctx, 500*time.Millisecond); err != nil {
			return err
		}
		last = read(s, scores)
	}
	if first[attacker] != "blocked" || last[attacker] != "neutral" {
		return fmt.Errorf("reputation: the attacker was %s, and is %s", first[attacker], last[attacker])
	}
	s.Takeaway("%s was %s and is %s: %d updates, and then only time",
		profiles[attacker].address, first[attacker], last[attacker], s.Sink.Count(reputation.Updates.Name()))
	return nil
}

// read prints the present scores, and returns the status of each profile.
func read(s *scenario.Screen, scores *reputation.Scores[string]) []string {
	var line strings.Builder
	var all []string
	for _, p := range profiles {
		score := scores.Score(p.address)
		all = append(all, status(score))
		fmt.Fprintf(&line, "%+4.1f %-10s  ", score, status(score))
	}
	s.Printf("%s", strings.TrimSpace(line.String()))
	return all
}
