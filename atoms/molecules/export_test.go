package molecules

// Awaiting returns for how many groups of runs the runner keeps awaited signals.
func Awaiting(r *Runner) int {
	r.runs.mu.Lock()
	defer r.runs.mu.Unlock()
	return len(r.runs.groups)
}
