package playbook

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// install reinstalls dependencies that are missing, partly there or corrupt.
type install struct{}

func (install) Name() string { return "reinstall" }
func (install) Edits() bool  { return true }

func (install) Applies(ev Evidence) (string, bool) {
	if ev.Spec.App.Install == "" {
		return "", false
	}
	for _, look := range []func(Evidence) string{nodeMissing, pythonMissing, goMissing, damaged, demoMissing} {
		if why := look(ev); why != "" {
			return why, true
		}
	}
	if ev.NoDependencies != "" && (ev.Down() || ev.Spec.App.Health != "" && !ev.Probe.OK) {
		return ev.NoDependencies, true
	}
	return "", false
}

func (install) Apply(ctx context.Context, _ Evidence, w Workbench) error {
	if err := w.Install(ctx); err != nil {
		return err
	}
	return w.Restart(ctx)
}

var (
	nodeModule = lazily(`(?:Cannot find (?:module|package)|Can't resolve|Failed to resolve import) ['"]([^'"\n]+)['"]`)
	pyModule   = lazily(`(?:ModuleNotFoundError|ImportError): No module named ['"]?([A-Za-z0-9_.]+)`)
	goModule   = lazily(`missing go\.sum entry|cannot find module providing package|no required module provides package [^\s;]+|verifying [^\s]+: checksum mismatch|go\.mod file indicates .* but vendor|inconsistent vendoring|is explicitly required in go\.mod, but not marked as explicit|cannot find package "[^"]+" in any of|is replaced in go\.mod, but not marked as replaced`)
	damage     = lazily(`(?i)invalid package config [^\n]*node_modules|node_modules[^\n]*(?:unexpected end of json input|unexpected end of file|invalid elf header|file too short)|(?:unexpected end of json input|invalid elf header|file too short)[^\n]*(?:node_modules|site-packages|\.venv)|` +
		`error (?:while )?parsing [^\n]*node_modules[^\n]*package\.json|was compiled against a different node\.js version|you installed (?:esbuild|sharp|rollup)[^\n]* for another platform`)
	// a syntax error whose first line names a file of a dependency
	nodeDamage = lazily(`(?m)^[^\s:]*node_modules/([^\n:]+):\d+\n(?:[^\n]*\n){1,5}?\s*SyntaxError`)
	// of Python, the last file before the error is the one that has it
	pyDamage  = lazily(`File "[^"\n]*(?:site-packages|\.venv)/([^"\n]+)", line \d+\n(?:[^\n]*\n){0,3}(?:\s*)(?:SyntaxError|IndentationError|ValueError: source code string cannot contain null bytes)`)
	pyPartial = lazily(`ImportError: cannot import name [^\n]+\((?:[^\n]*/)?(?:site-packages|\.venv)[^\n]*\)|(?:PackageNotFoundError|DistributionNotFound)[^\n]*|ImportError: [^\n]*(?:site-packages|\.venv)[^\n]*(?:file too short|invalid ELF header|undefined symbol)`)
	yarnState = lazily(`couldn't find the node_modules state file|The lockfile would have been modified by this install|Required package missing from disk|ERR_PNPM_[A-Z_]*(?:MODULES|BROKEN|OUTDATED|NO_IMPORTER)[A-Z_]*|(?i)a package is missing from its location|Your application tried to access [^\n]+, but it isn't declared`)
	demoPart  = lazily(`(?i)cannot find part[:\s]+["']?([\w./@-]+)`)
)

// nodeMissing: a package, by name or inside node_modules; a relative path is
// the project's own file, which no install brings back.
func nodeMissing(ev Evidence) string {
	for _, m := range nodeModule().FindAllStringSubmatch(ev.Log, 50) {
		name := m[1]
		_, inside, deep := strings.Cut(name, "node_modules/")
		switch {
		case deep:
			return "a part of the package " + packageOf(inside) + " is missing"
		case strings.HasPrefix(name, ".") || strings.HasPrefix(name, "/") || strings.HasPrefix(name, "node:"):
			continue
		case ev.Manifests["package.json"] == "":
			continue
		}
		return "the package " + packageOf(name) + " is missing"
	}
	return ""
}

// packageOf is the package of an import: "lodash/fp" is of lodash.
func packageOf(name string) string {
	parts := strings.SplitN(name, "/", 3)
	if strings.HasPrefix(name, "@") && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// pyNames are packages whose import is called otherwise.
var pyNames = map[string]string{
	"yaml": "pyyaml", "pil": "pillow", "cv2": "opencv", "bs4": "beautifulsoup4", "sklearn": "scikit-learn",
	"dotenv": "python-dotenv", "dateutil": "python-dateutil", "jwt": "pyjwt", "git": "gitpython",
	"mysqldb": "mysqlclient", "psycopg2": "psycopg2", "google": "google-",
}

// pythonMissing: a module that the project's own list of dependencies names.
func pythonMissing(ev Evidence) string {
	for _, m := range pyModule().FindAllStringSubmatch(ev.Log, 50) {
		module, _, _ := strings.Cut(m[1], ".")
		if dep := pythonDependency(module); listed(ev, dep) {
			return "the module " + module + " is missing"
		}
	}
	return ""
}

func pythonDependency(module string) string {
	name := strings.ToLower(module)
	if known, ok := pyNames[name]; ok {
		name = known
	}
	return strings.ReplaceAll(name, "_", "-")
}

func listed(ev Evidence, dep string) bool {
	for file, text := range ev.Manifests {
		if !strings.HasPrefix(file, "requirements") && file != "pyproject.toml" && file != "Pipfile" && file != "setup.cfg" {
			continue
		}
		for line := range strings.Lines(text) {
			line, _, _ = strings.Cut(line, "#")
			line = strings.ReplaceAll(strings.ToLower(line), "_", "-")
			if strings.HasSuffix(dep, "-") && strings.Contains(line, dep) || hasWord(line, dep) {
				return true
			}
		}
	}
	return false
}

func goMissing(ev Evidence) string {
	if ev.Manifests["go.mod"] == "" {
		return ""
	}
	if found := goModule().FindString(ev.Log); found != "" {
		return "modules are missing: " + found
	}
	return ""
}

func damaged(ev Evidence) string {
	if m := nodeDamage().FindStringSubmatch(ev.Log); m != nil {
		return "the package " + packageOf(m[1]) + " is corrupt"
	}
	if m := pyDamage().FindStringSubmatch(ev.Log); m != nil {
		module, _, _ := strings.Cut(m[1], "/")
		return "the module " + strings.TrimSuffix(module, ".py") + " is corrupt"
	}
	if pyPartial().MatchString(ev.Log) {
		return "a module of the dependencies is only partly there"
	}
	if yarnState().MatchString(ev.Log) {
		return "the installed packages are not those of the lock file"
	}
	if damage().MatchString(ev.Log) || notExecutable(ev) && toolDenied().MatchString(ev.Log) {
		return "a dependency on disk is corrupt"
	}
	return ""
}

// toolDenied: a program of a dependency lost its mode; installed again, it has it.
var toolDenied = lazily(`(?:node_modules/\.bin|\.venv/bin)/[^\s:]+:? [Pp]ermission denied`)

// demoMissing: the demo template's parts are its dependencies.
func demoMissing(ev Evidence) string {
	if m := demoPart().FindStringSubmatch(ev.Log); m != nil {
		return fmt.Sprintf("the part %s is missing", m[1])
	}
	return ""
}

// lazily compiles an expression at its first use: this package is in a program
// that starts for every process of a sandbox and for every command line.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
