package mesh

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Options configure a [Mesh]. Cluster is required. All nodes of a cluster should have the same
// Lease.
type Options struct {
	// Cluster is what the nodes have in common: letters, digits, "-" and "_", at most 64.
	Cluster string
	// Name is the name of this node, at most 256 bytes; "" means the host name and the process
	// id. If two nodes of one name are alive, the one that has started later counts, by the
	// clocks of their machines: the others ignore the earlier one. See [SignalDuplicate].
	Name string
	// Share is the pattern of the signals that leave this process; see [signals.Match]. "" means
	// none. Names that begin with "mesh." are never shared.
	//
	//ephemeral:raises
	Share string
	// Accept is the pattern of the signals that other nodes may raise here; "" means Share.
	//
	//ephemeral:raises
	Accept string
	// Lease is how long what a node holds stands after its last beat. 0 means 5 seconds, the
	// minimum is 100 ms. A node beats four times in this time.
	Lease time.Duration
	// MaxLate is how old a raised signal may be when it is raised here; older ones are
	// counted. 0 means 5 seconds, negative no limit.
	MaxLate time.Duration
	// MinNodes is how many nodes must be heard, this one included. While there are fewer,
	// [SignalAlone] is held. 0 means 2, negative means that it is never held.
	MinNodes int
	// Carry says which payloads travel. Other signals travel without their payloads. If a
	// payload cannot be encoded, its signal is not sent, and all nodes count it as missed; if it
	// cannot be decoded, its signal is refused. A panic counts as an error. A payload of a raised
	// signal is encoded in the background, 1000 of them between two beats: this must not take Lease.
	Carry []Carrier
	// MaxQueued is how many raised signals may wait to be sent. Further ones are not sent, and
	// all nodes count them as missed. 0 means 16,384. Negative is an error.
	MaxQueued int
	// MaxRate is how many signals a second another node may raise here; further ones are
	// counted, not raised. 0 means 200,000, negative no limit.
	MaxRate int
}

var clusterName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// resolved returns the options with defaults, or an error.
func (o Options) resolved() (Options, error) {
	if o.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return o, fmt.Errorf("mesh: Options.Name is empty, and the host has no name: %w", err)
		}
		o.Name = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	o.Accept, o.Lease, o.MaxLate = cmp.Or(o.Accept, o.Share), cmp.Or(o.Lease, 5*time.Second), cmp.Or(o.MaxLate, 5*time.Second)
	o.MinNodes, o.MaxQueued, o.MaxRate = cmp.Or(o.MinNodes, 2), cmp.Or(o.MaxQueued, 16384), cmp.Or(o.MaxRate, 200_000)
	switch {
	case !clusterName.MatchString(o.Cluster):
		return o, fmt.Errorf("mesh: Options.Cluster is %q, but must be 1 to 64 letters, digits, - and _", o.Cluster)
	case len(o.Name) > maxName || !utf8.ValidString(o.Name):
		return o, fmt.Errorf("mesh: Options.Name is %.300q, but must be UTF-8 of at most %d bytes", o.Name, maxName)
	case o.Lease < 100*time.Millisecond:
		return o, fmt.Errorf("mesh: Options.Lease is %v, but must be at least 100ms", o.Lease)
	case o.MinNodes == 1:
		return o, fmt.Errorf("mesh: Options.MinNodes is 1, but this node always hears itself: it must be at least 2, or negative")
	case o.MaxQueued < 0:
		return o, fmt.Errorf("mesh: Options.MaxQueued is %d, but must not be negative", o.MaxQueued)
	}
	return o, nil
}

// mayTravel reports whether signals of that name are for other nodes.
func mayTravel(pattern, name string) bool {
	return !strings.HasPrefix(name, "mesh.") && signals.Match(pattern, name)
}
