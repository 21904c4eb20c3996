package core_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
)

func TestStatusIsTextInJSON(t *testing.T) {
	for s := core.StatusPending; s <= core.StatusFinished; s++ {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back core.Status
		if err := json.Unmarshal(text, &back); err != nil || back != s {
			t.Errorf("%s reads as %v, %v", text, back, err)
		}
	}
	var s core.Status
	err := json.Unmarshal([]byte(`"runing"`), &s)
	if err == nil || !strings.Contains(err.Error(), `"runing"`) || !strings.Contains(err.Error(), "running") {
		t.Errorf("error %v, want the word and those that would do", err)
	}
}
