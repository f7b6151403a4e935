package playbook

import "strings"

// CleanInstall is a spec's install command as it repairs what is there, too: a
// plain install says "up to date" over a damaged package.
func CleanInstall(shell string, lockfiles map[string]bool) string {
	switch {
	case npmInstall().MatchString(shell) && lockfiles["package-lock.json"]:
		return npmWord().ReplaceAllString(shell, "npm ci")
	case npmInstall().MatchString(shell), yarnInstall().MatchString(shell) && !strings.Contains(shell, "--immutable"):
		return "rm -rf node_modules && " + shell
	case pnpmInstall().MatchString(shell) && !strings.Contains(shell, "--force"):
		return pnpmInstall().ReplaceAllString(shell, "${0} --force")
	case uvSync().MatchString(shell) && !strings.Contains(shell, "--reinstall"):
		return uvSync().ReplaceAllString(shell, "${0} --reinstall")
	case pipInstall().MatchString(shell) && !strings.Contains(shell, "--force-reinstall"):
		return pipInstall().ReplaceAllString(shell, "${0} --force-reinstall")
	}
	return shell
}

var (
	npmInstall  = lazily(`(?:^|[;&|]\s*)npm (?:install|i)(?: --?\S+)*\s*$`)
	npmWord     = lazily(`npm (?:install|i)\b`)
	yarnInstall = lazily(`(?:^|[;&|]\s*)yarn(?: install)?(?: --?\S+)*\s*$`)
	pnpmInstall = lazily(`\bpnpm (?:install|i)\b`)
	uvSync      = lazily(`\buv (?:sync|pip install)\b`)
	pipInstall  = lazily(`\bpip3? install\b`)
)
