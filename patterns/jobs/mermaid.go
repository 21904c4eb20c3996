package jobs

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/ephemeralgo/ephemeral/core"
)

// Mermaid draws jobs as a Mermaid flowchart: what sets them off, and which of them set off
// others by the names that they say they raise, or dotted, by failing or being rejected. What
// handlers raise is not known. The same jobs give the same text.
func Mermaid(jobs ...Job) string {
	var text strings.Builder
	text.WriteString("flowchart LR\n")
	var triggers []string
	for i := range jobs {
		j := &jobs[i]
		fmt.Fprintf(&text, "    j%d[\"%s\"]\n", i, escape(j.name()))
		if !slices.Contains(triggers, j.Trigger) {
			triggers = append(triggers, j.Trigger)
			fmt.Fprintf(&text, "    t%d([\"%s\"])\n", len(triggers)-1, escape(j.Trigger))
		}
	}
	for to := range jobs {
		follower := &jobs[to]
		fmt.Fprintf(&text, "    t%d --> j%d\n", slices.Index(triggers, follower.Trigger), to)
		for from := range jobs {
			j := &jobs[from]
			for _, name := range slices.Compact(slices.Sorted(slices.Values(j.emissions()))) {
				if follower.follows(name) {
					fmt.Fprintf(&text, "    j%d -->|\"%s\"| j%d\n", from, escape(name), to)
				}
			}
			for _, about := range []string{SignalRetry, SignalFailed, SignalRejected} {
				if from != to && follower.hearsAbout(about+":"+j.name()) {
					fmt.Fprintf(&text, "    j%d -.->|\"%s\"| j%d\n", from, escape(about), to)
				}
			}
		}
	}
	return text.String()
}

// hearsAbout reports whether the trigger matches names that begin with this one.
func (j *Job) hearsAbout(name string) bool {
	return slices.ContainsFunc(list(j.Trigger), func(term string) bool {
		return core.Match(term, name) || core.Match(term, name+":") || strings.HasPrefix(term, name+":")
	})
}

// escape makes a label that shows text as it is: Mermaid reads labels as Markdown.
func escape(text string) string {
	var out strings.Builder
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) && out.Len() > 0 || strings.ContainsRune(".:, ", r) {
			out.WriteRune(r)
		} else {
			fmt.Fprintf(&out, "#%d;", r)
		}
	}
	return out.String()
}
