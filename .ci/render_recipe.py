"""Render the conda recipe, as rattler-build does before it builds; what was found is printed."""

import pathlib

from rattler_build import RenderConfig, Stage0Recipe, VariantConfig

recipe = Stage0Recipe.from_file(str(pathlib.Path(__file__).parents[1] / ".conda" / "recipe.yaml"))
(variant,) = recipe.render(VariantConfig(), RenderConfig())
package = variant.recipe.package
print(f"recipe: {package.name} {package.version}, needs {', '.join(map(str, variant.recipe.requirements.run))}")
