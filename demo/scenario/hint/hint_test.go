package hint

import (
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/demo/scenario/scenariotest"
)

// It shows that a listener starts from the hint, and acts on the answer of the atom.
func TestScenario(t *testing.T) {
	scenariotest.Shows(t, Scenario,
		"  0.14s  mail:   hint ORD-124, writing the mail",
		"  0.15s  mail:   ORD-124 is not sent, the atom says: card declined",
		"  0.23s  mail:   ORD-125 is sent, the atom has 2 paid",
		"=> 3 hints, 2 mails: the atom knew that ORD-124 was not paid\n",
	)
}

func TestStopsWithItsContext(t *testing.T) {
	scenariotest.Stops(t, Scenario, 120*time.Millisecond)
}
