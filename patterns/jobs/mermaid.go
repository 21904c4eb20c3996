package jobs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Mermaid draws jobs as a Mermaid flowchart: the signals that start them, and which jobs start
// others. An arrow means that a name of EmitOnStart, EmitOnComplete or EmitOnFailure starts the
// other job. A dotted arrow means that a signal of this package starts it, such as
// [Failed]. Signals that handlers raise are not known. The same jobs give the same text.
func Mermaid(jobs ...Job) string {
	var nodes, edges strings.Builder
	var triggers []string
	for to := range jobs {
		f := &jobs[to]
		at := slices.Index(triggers, f.Trigger)
		if at < 0 {
			at, triggers = len(triggers), append(triggers, f.Trigger)
			fmt.Fprintf(&nodes, "    t%d([\"%s\"])\n", at, escape(f.Trigger))
		}
		fmt.Fprintf(&nodes, "    j%d[\"%s\"]\n", to, escape(f.name()))
		fmt.Fprintf(&edges, "    t%d --> j%d\n", at, to)
		for from := range jobs {
			j := &jobs[from]
			for _, name := range j.emissions() {
				if f.follows(name) {
					fmt.Fprintf(&edges, "    j%d -->|\"%s\"| j%d\n", from, escape(name), to)
				}
			}
			for _, about := range []string{retried, failed, rejected} {
				if from != to && f.hears(about+":"+j.name()) {
					fmt.Fprintf(&edges, "    j%d -.->|\"%s\"| j%d\n", from, about, to)
				}
			}
		}
	}
	return "flowchart LR\n" + nodes.String() + edges.String()
}

// hears reports whether the trigger matches names that begin with name.
func (j *Job) hears(name string) bool {
	return slices.ContainsFunc(list(j.Trigger), func(term string) bool {
		return signals.Match(term, name+":") || strings.HasPrefix(term+":", name+":")
	})
}

// Mermaid reads labels as Markdown; a digit at the start could begin a list.
var special = regexp.MustCompile(`^\d|[^\pL\d.:, ]`)

func escape(text string) string {
	return special.ReplaceAllStringFunc(text, func(s string) string { return fmt.Sprintf("#%d;", []rune(s)[0]) })
}
