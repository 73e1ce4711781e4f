// Package preflight holds the test that bootstrap's first steps meet a real node: the
// lab image in a virtual machine, reached by bootstrap's own driver, known by the
// fingerprint on its console, asked for its facts, judged, and given a data disk that
// then outlives a restart and a new system.
//
// SLIPWAY_IMAGE_DIR names the directory of the build, default ../../out/lab.
package preflight
