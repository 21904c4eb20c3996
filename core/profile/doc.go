// Package profile labels the goroutines of bodies for package runtime/pprof. So a profile says
// which coordinator and which lane takes the processor time.
//
//	uploads, err := core.NewCoordinator(profile.Wrap(upload), core.Options{Name: "uploads"})
//
// Then `go tool pprof -tagfocus coordinator=uploads` shows only these bodies, and `-tagroot coordinator` groups a
// profile by coordinator. The labels are "coordinator" and "lane". In a
// goroutine profile, labels say whose body a goroutine is.
package profile
