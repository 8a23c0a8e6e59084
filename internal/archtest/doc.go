// Package archtest holds tests about the repository itself: which package may import which, that the trunk stays a calculator,
// that everything exported is documented, and that what the documents point at exists. It has no code of its own to use.
package archtest
