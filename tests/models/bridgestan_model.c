/* A library with BridgeStan's C interface, written by hand, as it would be made of

     data { real<lower=0> scale; }
     parameters { real mu; real<lower=0> tau; matrix[2, 2] B; simplex[2] w; }
     transformed parameters { real total = mu + tau; }
     generated quantities { array[2] real log_lik = {mu, 2 * mu}; real noise = uniform_rng(0, 1); }
     model { mu ~ normal(1, scale); tau ~ lognormal(0, 1); to_vector(B) ~ normal(mu, 1); w ~ beta(2, 2) }

   where the log density is refused for mu > 50. Unconstrained: mu, log tau, B by columns, logit w[1]. */

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct { double scale; } bs_model;
typedef struct { unsigned int state; } bs_rng;

static void say(char **message, const char *text) {
  if (message) { *message = malloc(strlen(text) + 1); strcpy(*message, text); }
}

bs_model *bs_model_construct(const char *data, unsigned int seed, char **message) {
  const char *at = data ? strstr(data, "\"scale\":") : NULL;
  double scale = at ? atof(at + 8) : -1.0;
  if (!at) { say(message, "variable does not exist; variable name=scale\n"); return NULL; }
  if (!(scale > 0.0)) { say(message, "scale is not positive\n"); return NULL; }
  bs_model *model = malloc(sizeof(bs_model));
  model->scale = scale;
  return model;
}
void bs_model_destruct(bs_model *model) { free(model); }
void bs_free_error_msg(char *message) { free(message); }
const char *bs_name(const bs_model *model) { return "by_hand"; }
const char *bs_model_info(const bs_model *model) {
#ifdef STAN_THREADS
  return "Stan C++ Defines:\n\tSTAN_THREADS=true\n";
#else
  return "Stan C++ Defines:\n\tSTAN_THREADS=false\n";
#endif
}
const char *bs_param_names(const bs_model *model, bool include_tp, bool include_gq) {
  if (include_gq) return "mu,tau,B.1.1,B.2.1,B.1.2,B.2.2,w.1,w.2,total,log_lik.1,log_lik.2,noise";
  return include_tp ? "mu,tau,B.1.1,B.2.1,B.1.2,B.2.2,w.1,w.2,total" : "mu,tau,B.1.1,B.2.1,B.1.2,B.2.2,w.1,w.2";
}
const char *bs_param_unc_names(const bs_model *model) { return "mu,tau,B.1.1,B.2.1,B.1.2,B.2.2,w.1"; }
int bs_param_num(const bs_model *model, bool include_tp, bool include_gq) { return include_gq ? 12 : include_tp ? 9 : 8; }
int bs_param_unc_num(const bs_model *model) { return 7; }

bs_rng *bs_rng_construct(unsigned int seed, char **message) {
  bs_rng *rng = malloc(sizeof(bs_rng));
  rng->state = seed;
  return rng;
}
void bs_rng_destruct(bs_rng *rng) { free(rng); }

int bs_param_constrain(const bs_model *model, bool include_tp, bool include_gq, const double *x, double *y,
                       bs_rng *rng, char **message) {
  for (int j = 0; j < 6; j++) y[j] = x[j];
  y[1] = exp(x[1]);
  y[6] = 1.0 / (1.0 + exp(-x[6]));
  y[7] = 1.0 - y[6];
  if (include_tp) y[8] = y[0] + y[1];
  if (include_gq && !rng) { say(message, "generated quantities need a generator\n"); return -1; }
  if (include_gq) {
    y[9] = x[0];
    y[10] = 2.0 * x[0];
    rng->state = 1664525u * rng->state + 1013904223u;
    y[11] = rng->state / 4294967296.0;
  }
  return 0;
}

int bs_log_density_gradient(const bs_model *model, bool propto, bool jacobian, const double *x, double *value,
                            double *gradient, char **message) {
  if (x[0] > 50.0) { say(message, "mu is too large\n"); return -1; }
  if (!propto) { say(message, "constants were not to be computed\n"); return -1; }
  double precision = 1.0 / (model->scale * model->scale), r = x[0] - 1.0;
  double w = 1.0 / (1.0 + exp(-x[6])), share = jacobian ? 2.0 : 1.0;
  *value = -0.5 * (precision * r * r + x[1] * x[1]) - (jacobian ? 0.0 : x[1]) + share * (log(w) + log1p(-w));
  gradient[0] = -precision * r;
  gradient[1] = -x[1] - (jacobian ? 0.0 : 1.0);
  for (int j = 2; j < 6; j++) {
    double s = x[j] - x[0];
    *value -= 0.5 * s * s;
    gradient[j] = -s;
    gradient[0] += s;
  }
  gradient[6] = share * (1.0 - 2.0 * w);
  return 0;
}
