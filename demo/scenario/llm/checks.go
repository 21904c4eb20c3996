package llm

import (
	"context"
	"strings"
)

// kinds are the texts of the messages; each message adds a number.
var kinds = []string{
	"WIN MONEY NOW with ticket %d",
	"I was charged twice for order %d",
	"I cannot log in to my account, ticket %d",
	"The parcel %d came back with a note that I cannot read, what now?",
	"Nobody in our street has seen parcel %d, and it was yesterday",
}

// examples are messages whose labels are known.
var (
	examples = []string{"I was charged twice", "I cannot log in to my account"}
	labels   = []string{"billing", "account"}
)

func rules(_ context.Context, text string) (label string, err error) {
	if strings.Contains(text, "WIN MONEY") {
		label = "spam"
	}
	return label, nil
}

// similar returns the label of the example that is close to vector, or "".
func similar(vector []float64, known [][]float64) string {
	for i, example := range known {
		distance := 0.0
		for j, x := range vector {
			distance += (x - example[j]) * (x - example[j])
		}
		if distance < 0.5 {
			return labels[i]
		}
	}
	return ""
}
