// A reporter of vitest 3 and newer: streams every test case; a file that cannot be imported is a unit not built.
import hook from './node_results.cjs'

const { write, unit, message } = hook
const named = (test) => unit(test.module.moduleId) + ' > ' + test.fullName

export default class {
  onTestCaseReady(test) {
    write({ event: 'start', id: named(test), unit: unit(test.module.moduleId) })
  }
  onTestCaseResult(test) {
    const { state, errors } = test.result()
    const outcome = state === 'passed' || state === 'failed' ? state : 'skipped'
    const seconds = (test.diagnostic()?.duration || 0) / 1000
    write({ event: 'end', id: named(test), unit: unit(test.module.moduleId), outcome, seconds, message: message(errors?.[0]) })
  }
  onTestModuleEnd(module) {
    const [error] = module.errors()
    if (error) write({ event: 'unbuilt', unit: unit(module.moduleId), message: message(error) })
  }
}
