package arch

import (
	"testing"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repotest"
)

// TestRepository applies all rules to the checkout that the test runs in.
func TestRepository(t *testing.T) {
	_, tree := repotest.Here(t)
	for _, rule := range Rules {
		t.Run(rule.Name, func(t *testing.T) {
			vs := rule.Violations(tree, policy.Exceptions)
			for _, v := range vs {
				t.Error(v)
			}
			if len(vs) > 0 {
				t.Log("why this is a rule:", rule.Reason)
			}
		})
	}
}
