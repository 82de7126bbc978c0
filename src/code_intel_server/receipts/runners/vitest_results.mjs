// A reporter of vitest 3 and newer: streams every test case; a file that cannot be imported is a unit not built.
import { fileURLToPath } from 'node:url'
import hook from './node_results.cjs'

const { write, unit, message, wantsTest, BETWEEN } = hook
const named = (test) => unit(test.module.moduleId) + BETWEEN + test.fullName

export default class {
  onInit(vitest) {
    const canary = fileURLToPath(new URL('vitest_canary.mjs', import.meta.url))
    if (hook.canary) for (const project of vitest.projects) project.config.setupFiles.push(canary)
  }
  onTestModuleStart(module) {
    write({ event: 'open', unit: unit(module.moduleId) })
  }
  onTestCaseResult(test) {
    const { state, errors } = test.result()
    const outcome = state === 'passed' || state === 'failed' ? state : 'skipped'
    if (outcome === 'skipped' && !wantsTest(named(test))) return
    const seconds = (test.diagnostic()?.duration || 0) / 1000
    write({ event: 'end', id: named(test), unit: unit(test.module.moduleId), outcome, seconds, message: message(errors?.[0]) })
  }
  onTestModuleEnd(module) {
    const [error] = module.errors()
    if (error) write({ event: 'unbuilt', unit: unit(module.moduleId), message: message(error) })
    write({ event: 'close', unit: unit(module.moduleId) })
  }
}
