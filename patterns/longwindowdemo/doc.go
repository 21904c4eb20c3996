// Package longwindowdemo shows that the window of a coordinator bounds its memory: however
// many items run, it shows the most recent ones, as many as [core.Options.MaxTracked] says.
//
// A long window is an audit trail of what was done lately:
//
//	core.Options{MaxTracked: 10_000, MaxAge: 24 * time.Hour}
package longwindowdemo
