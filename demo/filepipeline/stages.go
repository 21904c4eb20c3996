package filepipeline

import "time"

// stage numbers the timed parts of the pipeline. The time of waiting for room downstream is not included. Only
// duplicate includes a wait: for the writer's answer, because that is its work.
type stage int

const (
	stageRead stage = iota
	stageThumbnail
	stageDuplicate
	stageMetadata
	stages // the number of stages
)

func (s stage) String() string {
	return [...]string{"read", "thumbnail", "duplicate", "metadata"}[s]
}

// StageSummary is how long one stage took per item.
type StageSummary struct {
	Name               string
	Count              uint64
	P50, P95, P99, Max time.Duration
}

func (h *histogram) summary(s stage) StageSummary {
	return StageSummary{
		Name:  s.String(),
		Count: h.total,
		P50:   h.quantile(0.50),
		P95:   h.quantile(0.95),
		P99:   h.quantile(0.99),
		Max:   h.max,
	}
}
