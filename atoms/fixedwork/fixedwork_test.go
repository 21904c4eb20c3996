package fixedwork_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ephemeralgo/ephemeral/atoms/fixedwork"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func TestNew(t *testing.T) {
	for given, want := range map[string]string{"": "fixedwork", "thumbs": "thumbs"} {
		pool := core.Must(fixedwork.New(coretest.Run, core.Options{Name: given, MaxConcurrency: 3}))
		assert.Equal(t, want, pool.Name())
		assert.Equal(t, 3, pool.Stats().Limit)
	}
	_, err := fixedwork.New(coretest.Run, core.Options{MaxConcurrency: -1})
	assert.ErrorContains(t, err, "fixedwork: core: Options.MaxConcurrency is -1")
}
